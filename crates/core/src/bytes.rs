//! Amounts of data.

use std::fmt;

/// An amount of data in bytes, for limits and totals. A packet's own length is a plain `u32`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// An amount of `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The amount as a number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Bytes {
    /// As iproute2 prints sizes: `Kb` and `Mb` are 1024 and 1 048 576 bytes, `b` is bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0b"),
            b if b % (1 << 20) == 0 => write!(f, "{}Mb", b >> 20),
            b if b % (1 << 10) == 0 => write!(f, "{}Kb", b >> 10),
            b => write!(f, "{b}b"),
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
