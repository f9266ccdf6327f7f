"""One look-up at a time for each question, however many ask it; and nobody in a hurry waits longer than they can."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class TooLate(Exception):
    """The look-up did not end in time, or too many were under way to begin it. One that was begun goes on."""


class _Flight(Generic[T]):
    """One look-up: whether it has ended, and how. (concurrent.futures has the like, and takes 10 ms to import.)"""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.result: T | None = None
        self.error: BaseException | None = None


class Flights(Generic[K, T]):
    """Look-ups under way. At most ``most`` of them run on behalf of somebody in a hurry."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._flights: dict[K, _Flight[T]] = {}
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
                mine = self._flights[key] = _Flight()
                if wait_s is not None and not self._room.acquire(blocking=False):
                    del self._flights[key]
                    raise TooLate
        if flight is None:
            if wait_s is None:
                self._fly(key, mine, call)
            else:
                self._begin(key, mine, call)
            flight = mine
        else:
            shared()
        if not flight.ended.wait(wait_s):
            raise TooLate
        if flight.error is not None:
            raise flight.error
        return flight.result  # type: ignore[return-value]  # it has ended without an error, so this is what was returned

    def _begin(self, key: K, flight: _Flight[T], call: Callable[[], T]) -> None:
        try:
            threading.Thread(target=self._fly_away, args=(key, flight, call), daemon=True).start()
        except RuntimeError:  # the system has no thread left
            with self._lock:
                del self._flights[key]
            self._room.release()
            flight.error = TooLate()
            flight.ended.set()

    def _fly(self, key: K, flight: _Flight[T], call: Callable[[], T]) -> None:
        try:
            flight.result = call()
        except BaseException as error:  # whatever it is, those who wait must hear of it
            flight.error = error
        finally:
            with self._lock:
                del self._flights[key]
            flight.ended.set()

    def _fly_away(self, key: K, flight: _Flight[T], call: Callable[[], T]) -> None:
        try:
            self._fly(key, flight, call)
        finally:
            self._room.release()
