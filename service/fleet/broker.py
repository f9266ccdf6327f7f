"""Captures on their way over Celery and Redis. A message holds a capture's id; what becomes of it is in its row.

Celery carries the messages; the loop around a capture is graphgate's own, with or without a broker. So a stock Celery
client may look into the queues, and a message that comes twice, late or never changes nothing but the waiting time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.capture.options import MAX_TIMEOUT_S
from service.settings import Settings, SettingsError

TASK = "graphgate.capture"
"""The task's name in every message; its one argument is the capture's id."""

VISIBILITY_S = int(2 * MAX_TIMEOUT_S)
"""Seconds after which Redis gives an unacknowledged message to another worker: longer than the longest capture. A lost
worker's capture does not wait for it: its lease in the database ends much earlier."""

_CONNECT_S = 2.0
_ANSWER_S = 5.0
_PATIENCE: Mapping[str, Any] = {"max_retries": 1, "interval_start": 0.1}
_log = logging.getLogger("graphgate.broker")


class BrokerDown(Exception):
    """The broker does not answer; captures wait in the database meanwhile."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message: look at this capture. ``done`` acknowledges it, and raises :class:`BrokerDown` where it cannot."""

    capture: str
    done: Callable[[], None]


class Broker:
    """The broker at that address, such as ``redis://redis:6379/0``.

    Raises:
        SettingsError: the extra ``fleet`` is not installed, or the address is none.
    """

    def __init__(self, url: str) -> None:
        try:
            from celery import Celery  # the extra `fleet`: the service without a broker does not need it
            from kombu.exceptions import KombuError
            from redis.exceptions import RedisError
        except ModuleNotFoundError as error:
            raise SettingsError(
                f"GRAPHGATE_BROKER_URL is set and the package {error.name} is not installed. "
                "Install graphgate with the extra that holds it: pip install 'graphgate[fleet]'."
            ) from None
        self._failures: tuple[type[Exception], ...] = (OSError, KombuError, RedisError)
        self._app = Celery("graphgate", broker=url, set_as_current=False)
        self._app.conf.update(
            broker_connection_timeout=_CONNECT_S,
            broker_transport_options={
                "visibility_timeout": VISIBILITY_S,
                "socket_connect_timeout": _CONNECT_S,
                "socket_timeout": _ANSWER_S,
                **_PATIENCE,
            },
            task_acks_late=True,
            task_reject_on_worker_lost=True,
            task_ignore_result=True,
            task_publish_retry=False,
            task_serializer="json",
            accept_content=["json"],
            worker_prefetch_multiplier=1,
        )

    @contextmanager
    def sending(self) -> Iterator[Callable[[str, str], None]]:
        """A call that sends a capture to a queue: ``send(capture, queue)``. One connection for many.

        Raises:
            BrokerDown: the broker does not answer.
        """
        with self._failing(), self._app.connection_for_write() as connection:
            connection.ensure_connection(**_PATIENCE)
            with self._app.amqp.Producer(connection, auto_declare=False) as producer:

                def send(capture: str, queue: str) -> None:
                    self._app.send_task(
                        TASK, args=[capture], queue=queue, producer=producer, ignore_result=True, retry=False
                    )

                yield send

    def depths(self, queues: Sequence[str]) -> dict[str, int]:
        """How many messages wait in each queue, not counting those that a worker holds.

        Raises:
            BrokerDown: the broker does not answer.
        """
        with self._failing(), self._app.connection_for_read() as connection:
            connection.ensure_connection(**_PATIENCE)
            channel: Any = connection.default_channel
            return {queue: channel.queue_declare(queue=queue).message_count for queue in queues}

    @contextmanager
    def receiving(self, queues: Sequence[str]) -> Iterator[Callable[[float], Delivery | None]]:
        """A call that waits so many seconds for a message; one message at a time is out, until it is acknowledged.

        Raises:
            BrokerDown: the broker does not answer.
        """
        arrived: list[Delivery] = []

        def on_message(message: Any) -> None:
            capture = _capture_in(message)
            if capture is None:
                message.reject()
            else:
                arrived.append(Delivery(capture, partial(self._acknowledge, message)))

        with self._failing(), self._app.connection_for_read() as connection:
            connection.ensure_connection(**_PATIENCE)
            channel = connection.default_channel
            consumer = self._app.amqp.TaskConsumer(
                channel,
                queues=[self._app.amqp.queues.select_add(queue) for queue in queues],
                on_message=on_message,
            )
            consumer.qos(prefetch_count=1)
            with consumer:

                def receive(wait_s: float) -> Delivery | None:
                    with self._failing():
                        try:
                            connection.drain_events(timeout=wait_s)
                        except TimeoutError:
                            return None
                        except (ValueError, LookupError, TypeError):
                            _log.warning("what came over the broker is no message; it was dropped", exc_info=True)
                    return arrived.pop(0) if arrived else None

                yield receive

    def _acknowledge(self, message: Any) -> None:
        with self._failing():
            message.ack()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise BrokerDown(str(error)) from error


def _capture_in(message: Any) -> str | None:
    """The capture's id in a message; None where it is not one of ours."""
    try:
        (identity,), *_ = message.decode()
    except Exception:  # whatever somebody else put there; the decoder raises what it likes
        _log.warning("a message that cannot be read was dropped", exc_info=True)
        return None
    return identity if isinstance(identity, str) else None


def open_broker(settings: Settings) -> Broker | None:
    """The broker of the settings; None without one.

    Raises:
        SettingsError: it cannot be used.
    """
    url = settings.broker_url
    return None if url is None else Broker(url.get_secret_value())
