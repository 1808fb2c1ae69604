"""Results of foreign speed tests, as types of Python.

Made of the declarations in `crates/speedtest` by `make docs`: change them there.
"""

from __future__ import annotations

from typing import Literal, TypedDict, final


@final
class Truncated(TypedDict):
    """Directions of ndt7 that ended too soon.

    Attributes:
        download: whether the download did.
        upload: whether the upload did.
    """

    download: bool
    upload: bool


@final
class Ndt7Result(TypedDict):
    """Result of ndt7.

    Attributes:
        method: name of the method.
        formula: whose formulas the figures follow, and in which version.
        download_mbps: rate of the download by the method's formula, in Mbit/s.
        upload_mbps: rate of the upload by the method's formula, in Mbit/s.
        latency_ms: latency that the official client shows first, in ms.
        latency_definition: what that latency is, in words.
        srtt_ms: smoothed round trip of the server's TCP at the end of the download, in ms (`TCPInfo.RTT`).
        retransmission_rate: share of the download's bytes that were sent again, 0 to 1 (`BytesRetrans` /
            `BytesSent`).
        download_duration_s: how long the measurement of the download covers, in s.
        upload_duration_s: how long the measurement of the upload covers, in s; null if the server did not
            tell.
        truncated: whether a direction covers less than 9 s of the 10.
        failures: why the test ended early, in sentences; empty if it did not.
    """

    method: Literal["ndt7"]
    formula: str
    download_mbps: float | None
    upload_mbps: float | None
    latency_ms: float | None
    latency_definition: str
    srtt_ms: float | None
    retransmission_rate: float | None
    download_duration_s: float
    upload_duration_s: float | None
    truncated: Truncated
    failures: list[str]


@final
class RequestCounts(TypedDict):
    """How many requests of each direction gave a rate.

    Attributes:
        download: downloads.
        upload: uploads.
    """

    download: int
    upload: int


@final
class CloudflareResult(TypedDict):
    """Result of Cloudflare's speed test.

    Attributes:
        method: name of the method.
        formula: whose formulas the figures follow, and in which version.
        download_mbps: rate of the download by the method's formula, in Mbit/s.
        upload_mbps: rate of the upload by the method's formula, in Mbit/s.
        latency_ms: latency that the official client shows first, in ms.
        jitter_ms: jitter without load, by the method's formula, in ms.
        download_loaded_latency_ms: median of round trips during the download, in ms.
        upload_loaded_latency_ms: median of round trips during the upload, in ms.
        latency_definition: what that latency is, in words.
        missing: figures that the method could not have, each with why.
        requests: how many requests gave a rate.
        failures: why the test ended early, in sentences; empty if it did not.
    """

    method: Literal["cloudflare"]
    formula: str
    download_mbps: float | None
    upload_mbps: float | None
    latency_ms: float | None
    jitter_ms: float | None
    download_loaded_latency_ms: float | None
    upload_loaded_latency_ms: float | None
    latency_definition: str
    missing: list[str]
    requests: RequestCounts
    failures: list[str]


@final
class LibrespeedResult(TypedDict):
    """Result of LibreSpeed's test.

    Attributes:
        method: name of the method.
        formula: whose formulas the figures follow, and in which version.
        download_mbps: rate of the download by the method's formula, in Mbit/s.
        upload_mbps: rate of the upload by the method's formula, in Mbit/s.
        latency_ms: latency that the official client shows first, in ms.
        jitter_ms: jitter without load, by the method's formula, in ms.
        latency_definition: what that latency is, in words.
        failures: why the test ended early, in sentences; empty if it did not.
    """

    method: Literal["librespeed"]
    formula: str
    download_mbps: float | None
    upload_mbps: float | None
    latency_ms: float | None
    jitter_ms: float | None
    latency_definition: str
    failures: list[str]


@final
class OoklaLatency(TypedDict):
    """Round trips during the load of one direction of a test like Ookla's.

    Attributes:
        iqm_ms: their interquartile mean, in ms.
        low_ms: the shortest, in ms.
        high_ms: the longest, in ms.
        jitter_ms: their jitter by the method's formula, in ms.
    """

    iqm_ms: float | None
    low_ms: float | None
    high_ms: float | None
    jitter_ms: float | None


@final
class OoklaDirection(TypedDict):
    """One direction of a test like Ookla's.

    Attributes:
        bytes: bytes that were moved.
        duration_s: how long the load lasted, in s.
        mean_mbps: all bytes over the whole time, without slices left out, in Mbit/s; null if nothing was
            moved.
        connections: how many connections carried the load.
        loaded_latency: round trips during the load.
    """

    bytes: int
    duration_s: float
    mean_mbps: float | None
    connections: int
    loaded_latency: OoklaLatency


@final
class DatagramCounts(TypedDict):
    """Datagrams by which loss was measured.

    Attributes:
        sent: how many were sent.
        received: how many the server received, each once; null where nobody knows.
        duplicates: how many the server received again; null where nobody knows.
    """

    sent: int
    received: int | None
    duplicates: int | None


@final
class OoklaResult(TypedDict):
    """Result of a test like Ookla's.

    Attributes:
        method: name of the method.
        formula: whose formulas the figures follow, and in which version.
        download_mbps: rate of the download by the method's formula, in Mbit/s.
        upload_mbps: rate of the upload by the method's formula, in Mbit/s.
        latency_ms: latency that the official client shows first, in ms.
        jitter_ms: jitter without load, by the method's formula, in ms.
        download_loaded_latency_ms: interquartile mean of round trips during the download, in ms.
        upload_loaded_latency_ms: interquartile mean of round trips during the upload, in ms.
        latency_definition: what that latency is, in words.
        download: the download in detail.
        upload: the upload in detail.
        packet_loss_percent: datagrams that were lost on the way up, in percent, 0 to 100.
        datagrams: datagrams by which the loss was measured.
        missing: figures that the method could not have, each with why.
        failures: why the test ended early, in sentences; empty if it did not.
    """

    method: Literal["ookla"]
    formula: str
    download_mbps: float | None
    upload_mbps: float | None
    latency_ms: float | None
    jitter_ms: float | None
    download_loaded_latency_ms: float | None
    upload_loaded_latency_ms: float | None
    latency_definition: str
    download: OoklaDirection
    upload: OoklaDirection
    packet_loss_percent: float | None
    datagrams: DatagramCounts
    missing: list[str]
    failures: list[str]


@final
class RpmDirection(TypedDict):
    """One direction of the test of responsiveness.

    Attributes:
        rpm: responsiveness by the draft, in round trips a minute.
        rpm_goresponsiveness: responsiveness by the formula of goresponsiveness, in round trips a minute.
        goodput_mbps: goodput of all connections over the last four intervals of 1 s, by which the method
            ends, in Mbit/s.
        mean_mbps: all bytes over the whole load, with its beginning, in Mbit/s; null if nothing was moved.
        connections: how many connections carried the load.
        confidence: how far the figures can be trusted: `low`, `medium` or `high`.
        foreign_tcp_ms: mean of TCP's handshakes of probes on connections of their own, in ms (`tcp_f` in the
            draft).
        foreign_tls_ms: mean of TLS' handshakes of probes on connections of their own, in ms (`tls_f` in the
            draft).
        foreign_http_ms: mean of the requests of probes on connections of their own, in ms (`http_f` in the
            draft).
        self_http_ms: mean of the requests of probes on the connections with the load, in ms (`http_s` in the
            draft).
    """

    rpm: float | None
    rpm_goresponsiveness: float | None
    goodput_mbps: float | None
    mean_mbps: float | None
    connections: int
    confidence: str
    foreign_tcp_ms: float | None
    foreign_tls_ms: float | None
    foreign_http_ms: float | None
    self_http_ms: float | None


@final
class RpmResult(TypedDict):
    """Result of the test of responsiveness under working conditions.

    Attributes:
        method: name of the method.
        formula: whose formulas the figures follow, and in which version.
        download: the download; null if it was not measured.
        upload: the upload; null if it was not measured.
        failures: why the test ended early, in sentences; empty if it did not.
    """

    method: Literal["rpm"]
    formula: str
    download: RpmDirection | None
    upload: RpmDirection | None
    failures: list[str]


@final
class HttpDirection(TypedDict):
    """One direction of the test over plain HTTP.

    Attributes:
        goodput_mbps: bytes that the application received, in Mbit/s.
        connections: how many connections carried the load.
        saturated: whether more connections brought nothing more: the line was full.
        latency_increase_ms: mean of the round trips, over that without load, in ms.
        pings_answered: how many round trips were measured.
        pings_lost: how many round trips were begun and not answered.
    """

    goodput_mbps: float
    connections: int
    saturated: bool
    latency_increase_ms: float | None
    pings_answered: int
    pings_lost: int


@final
class HttpResult(TypedDict):
    """Result of the test of a server that speaks HTTP and nothing of Weir's.

    Attributes:
        method: name of the method.
        formula: whose formulas the figures follow, and in which version.
        download_mbps: rate of the download by the method's formula, in Mbit/s.
        upload_mbps: rate of the upload by the method's formula, in Mbit/s.
        latency_ms: latency that the official client shows first, in ms.
        download_loaded_latency_ms: median of round trips during the download, in ms.
        upload_loaded_latency_ms: median of round trips during the upload, in ms.
        latency_definition: what that latency is, in words.
        server_kind: whose requests the server answers, such as `Cloudflare`, or `a file`; null if nobody's.
        download: the download in detail; null if it was not measured.
        upload: the upload in detail; null if it was not measured.
        missing: figures that the method could not have, each with why.
        failures: why the test ended early, in sentences; empty if it did not.
    """

    method: Literal["http"]
    formula: str
    download_mbps: float | None
    upload_mbps: float | None
    latency_ms: float | None
    download_loaded_latency_ms: float | None
    upload_loaded_latency_ms: float | None
    latency_definition: str
    server_kind: str | None
    download: HttpDirection | None
    upload: HttpDirection | None
    missing: list[str]
    failures: list[str]


MethodResult = Ndt7Result | CloudflareResult | LibrespeedResult | OoklaResult | RpmResult | HttpResult
"""Result of a method; its key `method` says of which."""
