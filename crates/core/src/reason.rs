//! Why packets are dropped or marked.

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The queue's limit in packets or bytes was reached.
    Overlimit,
    /// The queue's limit of memory was reached.
    Overmemory,
    /// CoDel: the sojourn time stayed above the target for an interval.
    TargetExceeded,
    /// Drawn at random before the queue is full (RED between its thresholds, BLUE, PIE).
    Early,
    /// RED: the average queue is above its upper threshold.
    Forced,
    /// CHOKe: a packet drawn from the queue was of the same flow; both are dropped.
    SameFlow,
    /// SFB: the flow does not respond and exceeds what such flows may send.
    Penalty,
    /// DualPI2: the packet waited longer than the step threshold and could not be marked.
    Step,
    /// Longer than the shaper can ever pass (longer than the burst).
    TooLong,
    /// No class takes the packet.
    Unclassified,
    /// Lost on the line, by a loss model.
    LinkLoss,
    /// BLUE: at random, from a flow that kept overflowing the queue.
    Blue,
    /// A TCP acknowledgement that says nothing beyond a later one in the queue.
    AckFiltered,
    /// Beyond the rate of a policer.
    Policed,
    /// FRED: the flow holds more than its share of the queue.
    Unfair,
}

/// Why a packet was marked CE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MarkReason {
    /// CoDel: marked where a packet without ECN would have been dropped.
    TargetExceeded,
    /// The sojourn time exceeded `ce_threshold`.
    CeThreshold,
    /// Drawn at random before the queue is full (RED between its thresholds, BLUE, PIE).
    Early,
    /// RED: the average queue is above its upper threshold.
    Forced,
    /// DualPI2: the packet waited longer than the step threshold.
    Step,
    /// Marked where the line would have lost a packet without ECN (`netem ecn`).
    LinkLoss,
}

impl DropReason {
    /// All reasons, in the order in which statistics and records count them.
    pub const ALL: [Self; 15] = [
        Self::Overlimit,
        Self::Overmemory,
        Self::TargetExceeded,
        Self::Early,
        Self::Forced,
        Self::SameFlow,
        Self::Penalty,
        Self::Step,
        Self::TooLong,
        Self::Unclassified,
        Self::LinkLoss,
        Self::Blue,
        Self::AckFiltered,
        Self::Policed,
        Self::Unfair,
    ];

    /// The reason as records name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overlimit => "overlimit",
            Self::Overmemory => "overmemory",
            Self::TargetExceeded => "target_exceeded",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::SameFlow => "same_flow",
            Self::Penalty => "penalty",
            Self::Step => "step",
            Self::TooLong => "too_long",
            Self::Unclassified => "unclassified",
            Self::LinkLoss => "link_loss",
            Self::Blue => "blue",
            Self::AckFiltered => "ack_filtered",
            Self::Policed => "policed",
            Self::Unfair => "unfair",
        }
    }
}

impl MarkReason {
    /// All reasons, in the order in which statistics and records count them.
    pub const ALL: [Self; 6] = [
        Self::TargetExceeded,
        Self::CeThreshold,
        Self::Early,
        Self::Forced,
        Self::Step,
        Self::LinkLoss,
    ];

    /// The reason as records name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TargetExceeded => "target_exceeded",
            Self::CeThreshold => "ce_threshold",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Step => "step",
            Self::LinkLoss => "link_loss",
        }
    }
}
