"""One look-up at a time for each question, however many ask it; and nobody in a hurry waits longer than they can."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class TooLate(Exception):
    """The look-up did not end in time, or too many were under way to begin it. One that was begun goes on."""


class Flights(Generic[K, T]):
    """Look-ups under way. At most ``most`` of them run on behalf of somebody in a hurry."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._flights: dict[K, Future[T]] = {}
        self._room = threading.Semaphore(most)

    def run(self, key: K, call: Callable[[], T], *, wait_s: float | None, shared: Callable[[], None]) -> T:
        """What ``call`` returns, or raises, called once for everybody who asks for ``key`` meanwhile.

        ``shared`` is called where the look-up was under way already. With ``wait_s`` the call runs in a thread of its
        own.

        Raises:
            TooLate: only with ``wait_s``.
        """
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                mine = self._flights[key] = Future()
                if wait_s is not None and not self._room.acquire(blocking=False):
                    del self._flights[key]
                    raise TooLate
        if flight is None:
            if wait_s is None:
                self._fly(key, mine, call)
            else:
                threading.Thread(target=self._fly_away, args=(key, mine, call), daemon=True).start()
            flight = mine
        else:
            shared()
        try:
            return flight.result(wait_s)
        except FutureTimeout:
            if flight.done():
                raise  # the call's own
            raise TooLate from None

    def _fly(self, key: K, flight: Future[T], call: Callable[[], T]) -> None:
        try:
            result = call()
        except BaseException as error:  # whatever it is, those who wait must hear of it
            self._land(key)
            flight.set_exception(error)
        else:
            self._land(key)
            flight.set_result(result)

    def _fly_away(self, key: K, flight: Future[T], call: Callable[[], T]) -> None:
        try:
            self._fly(key, flight, call)
        finally:
            self._room.release()

    def _land(self, key: K) -> None:
        with self._lock:
            del self._flights[key]
