//! One line of a transcript: a segment, as far as the test has something to say about it.
//!
//! What arrives and what leaves is written with the same words. A line that leaves is compared on
//! everything that it states, and always on its kind, number, SACK blocks and ECN flags.

use std::fmt;

use weir_core::{Ecn, Time};
use weir_tcp::{Block, Flags, SackBlocks, Segment};

/// The start of a script: everything in it is counted from here. All ticks of the timer wheel's lower
/// levels begin here too.
pub const ORIGIN: Time = Time::from_millis(16_384);

/// Bytes of data in a full segment.
pub const MSS: u32 = 1_000;

/// A segment of a transcript.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub kind: LineKind,
    pub number: u32,
    pub flags: Flags,
    pub sack: SackBlocks,
    pub acks: Option<u32>,
    pub echo: Option<i64>,
    pub stamp: Option<i64>,
    pub window: Option<u32>,
    pub len: Option<u16>,
    pub ecn: Option<Ecn>,
    pub pushed: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Syn,
    SynAck,
    /// Without data.
    Ack,
    /// Data, for the first time.
    Data,
    /// Data that was sent before.
    Again,
}

/// A SYN.
pub fn syn() -> Line {
    Line::new(LineKind::Syn, 0)
}

/// A SYN with an acknowledgement.
pub fn syn_ack() -> Line {
    Line::new(LineKind::SynAck, 0)
}

/// A segment without data that expects segment `number` next.
pub fn ack(number: u32) -> Line {
    Line::new(LineKind::Ack, number)
}

/// Data segment `number`.
pub fn data(number: u32) -> Line {
    Line::new(LineKind::Data, number)
}

/// Data segment `number`, which was sent before.
pub fn again(number: u32) -> Line {
    Line::new(LineKind::Again, number)
}

/// Data segments `numbers`, each for the first time.
pub fn all(numbers: std::ops::Range<u32>) -> Vec<Line> {
    numbers.map(data).collect()
}

impl Line {
    fn new(kind: LineKind, number: u32) -> Self {
        Self {
            kind,
            number,
            flags: Flags::default(),
            sack: SackBlocks::default(),
            acks: None,
            echo: None,
            stamp: None,
            window: None,
            len: None,
            ecn: None,
            pushed: None,
        }
    }

    /// Reports `blocks` of segments that arrived, each from its first to behind its last.
    pub fn sack(mut self, blocks: &[(u32, u32)]) -> Self {
        for &(start, end) in blocks {
            self.sack.push(Block { start, end });
        }
        self
    }

    /// Reports a duplicate; to be written before [`sack`](Self::sack).
    pub fn duplicate(mut self, start: u32, end: u32) -> Self {
        assert!(self.sack.is_empty(), "the duplicate comes first");
        self.sack.push(Block { start, end });
        self.sack.set_duplicate();
        self
    }

    /// With the ECN-echo flag.
    pub fn ece(mut self) -> Self {
        self.flags = self.flags.with(Flags::ECE);
        self
    }

    /// With the flag that says that the window was reduced.
    pub fn cwr(mut self) -> Self {
        self.flags = self.flags.with(Flags::CWR);
        self
    }

    /// With this codepoint in its IP header.
    pub fn ecn(mut self, ecn: Ecn) -> Self {
        self.ecn = Some(ecn);
        self
    }

    /// With the push flag, or without.
    pub fn pushed(mut self, pushed: bool) -> Self {
        self.pushed = Some(pushed);
        self
    }

    /// Acknowledges up to segment `number`.
    pub fn acks(mut self, number: u32) -> Self {
        self.acks = Some(number);
        self
    }

    /// Sets the line's timestamp, in milliseconds from the start of the script.
    pub fn stamp(mut self, ms: i64) -> Self {
        self.stamp = Some(ms);
        self
    }

    /// The timestamp that it echoes, in milliseconds from the start of the script.
    pub fn echo(mut self, ms: i64) -> Self {
        self.echo = Some(ms);
        self
    }

    /// Offers this receive window, in bytes.
    pub fn window(mut self, bytes: u32) -> Self {
        self.window = Some(bytes);
        self
    }

    /// Carries that many bytes.
    pub fn len(mut self, bytes: u16) -> Self {
        self.len = Some(bytes);
        self
    }

    /// Whether `sent` is what this line says.
    pub fn says(&self, sent: &Line) -> bool {
        fn agree<T: Copy + PartialEq>(stated: Option<T>, real: Option<T>) -> bool {
            stated.is_none() || stated == real
        }
        (self.kind, self.number, self.flags, self.sack)
            == (sent.kind, sent.number, sent.flags, sent.sack)
            && agree(self.acks, sent.acks)
            && agree(self.echo, sent.echo)
            && agree(self.stamp, sent.stamp)
            && agree(self.window, sent.window)
            && agree(self.len, sent.len)
            && agree(self.ecn, sent.ecn)
            && agree(self.pushed, sent.pushed)
    }

    /// The line that describes `segment`; `next` is the next data segment that was never sent.
    pub fn of(segment: &Segment, ecn: Ecn, next: u32) -> Self {
        let kind = match (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK), segment.len)
        {
            (true, false, _) => LineKind::Syn,
            (true, true, _) => LineKind::SynAck,
            (false, _, 0) => LineKind::Ack,
            (false, ..) if segment.seq < next => LineKind::Again,
            (false, ..) => LineKind::Data,
        };
        let mut line = match kind {
            LineKind::Syn | LineKind::SynAck => Self::new(kind, 0),
            LineKind::Ack => Self::new(kind, segment.ack),
            LineKind::Data | LineKind::Again => Self::new(kind, segment.seq),
        };
        for flag in [Flags::ECE, Flags::CWR] {
            if segment.flags.has(flag) {
                line.flags = line.flags.with(flag);
            }
        }
        line.sack = segment.sack;
        line.acks = Some(segment.ack);
        line.echo = segment.ts_echo.map(since_origin);
        line.stamp = Some(since_origin(segment.ts));
        line.window = Some(segment.window);
        line.len = Some(segment.len);
        line.ecn = Some(ecn);
        line.pushed = Some(segment.flags.has(Flags::PSH));
        line
    }
}

/// A timestamp in milliseconds from the start of the script.
pub fn since_origin(stamp: u32) -> i64 {
    i64::from(stamp) - origin_ms()
}

/// The timestamp `ms` milliseconds after the start of the script.
pub fn stamp_of(ms: i64) -> u32 {
    u32::try_from(ms + origin_ms()).expect("a timestamp before the run")
}

fn origin_ms() -> i64 {
    (ORIGIN.as_nanos() / 1_000_000) as i64
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LineKind::Syn => f.write_str("syn")?,
            LineKind::SynAck => f.write_str("syn-ack")?,
            LineKind::Ack => write!(f, "ack {}", self.number)?,
            LineKind::Data => write!(f, "data {}", self.number)?,
            LineKind::Again => write!(f, "again {}", self.number)?,
        }
        if let Some(Block { start, end }) = self.sack.duplicate() {
            write!(f, " duplicate {start}-{end}")?;
        }
        if !self.sack.received().is_empty() {
            f.write_str(" sack")?;
        }
        for Block { start, end } in self.sack.received() {
            write!(f, " {start}-{end}")?;
        }
        for (flag, name) in [(Flags::ECE, "ECE"), (Flags::CWR, "CWR")] {
            if self.flags.has(flag) {
                write!(f, " {name}")?;
            }
        }
        if f.alternate() {
            self.fmt_details(f)?;
        }
        Ok(())
    }
}

impl Line {
    /// Writes the details that a line may leave out.
    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.acks.filter(|_| self.kind != LineKind::Ack) {
            write!(f, ", acks {number}")?;
        }
        if let Some(ms) = self.stamp {
            write!(f, ", stamp {ms}")?;
        }
        if let Some(ms) = self.echo {
            write!(f, ", echo {ms}")?;
        }
        if let Some(bytes) = self.window {
            write!(f, ", window {bytes}")?;
        }
        if let Some(bytes) = self.len.filter(|&bytes| bytes > 0) {
            write!(f, ", {bytes} bytes")?;
        }
        if let Some(ecn) = self.ecn {
            write!(f, ", {ecn:?}")?;
        }
        if self.pushed == Some(true) {
            write!(f, ", pushed")?;
        }
        Ok(())
    }
}
