"""What Prometheus reads from the server."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


SHARED = "PROMETHEUS_MULTIPROC_DIR"  # set by the parent of several workers, before this is imported


class Metrics:
    """Counters of one server, in a registry of its own; those of several workers are added up."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        name = "heterformer_"
        self.requests = Counter(
            f"{name}requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            f"{name}request_seconds", "Time to answer.", ["route"], buckets=SECONDS, registry=registry
        )
        self.under_way = Gauge(
            f"{name}requests_under_way",
            "Requests being answered.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.waiting = Gauge(
            f"{name}texts_waiting",
            "Texts that wait to be encoded.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.batch_texts = Histogram(
            f"{name}batch_texts", "Texts encoded together.", buckets=TEXTS, registry=registry
        )
        self.tokens = Counter(f"{name}tokens", "Tokens of encoded texts.", registry=registry)
        self.reloads = Counter(f"{name}reloads", "Runs opened anew.", ["result"], registry=registry)

    def observe_batch(self, texts: int, tokens: int) -> None:
        """A batch was encoded."""
        self.batch_texts.observe(texts)
        self.tokens.inc(tokens)

    def page(self) -> bytes:
        """All of it in Prometheus's text format."""
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
        return generate_latest(everyone)
