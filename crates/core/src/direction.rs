//! The two directions of data on a path, and its two ends.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Direction of data, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Upload, from the client.
    Up,
    /// Download, to the client.
    Down,
}

/// An end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client.
    Client,
    /// A server.
    Server,
}

impl End {
    /// The end across the path.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl Direction {
    /// Both directions, in the order of arrays that hold something of each.
    pub const ALL: [Self; 2] = [Self::Up, Self::Down];

    /// The words for both directions in files and messages, in the order of [`Self::ALL`].
    pub const WORDS: &[&str] = &["up", "down"];

    /// The word for this direction in files and messages: `up` or `down`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Name of data in this direction: `upload` or `download`.
    #[must_use]
    pub const fn transfer(self) -> &'static str {
        match self {
            Self::Up => "upload",
            Self::Down => "download",
        }
    }

    /// The other direction.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// The end from which data go in this direction.
    #[must_use]
    pub const fn sender(self) -> End {
        match self {
            Self::Up => End::Client,
            Self::Down => End::Server,
        }
    }

    /// Whether data go to the client.
    #[must_use]
    pub const fn is_down(self) -> bool {
        matches!(self, Self::Down)
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_places_agree() {
        for (place, direction) in Direction::ALL.into_iter().enumerate() {
            assert_eq!(direction as usize, place);
            assert_eq!(direction.word(), Direction::WORDS[place]);
            assert_eq!(direction.opposite().opposite(), direction);
            assert_ne!(direction.opposite(), direction);
            assert_eq!(direction.opposite().sender(), direction.sender().other());
        }
        assert_eq!([Direction::Up.word(), Direction::Up.transfer()], ["up", "upload"]);
        assert_eq!([Direction::Down.word(), Direction::Down.transfer()], ["down", "download"]);
        assert_eq!(Direction::Up.sender(), End::Client);
        assert!(Direction::Down.is_down() && !Direction::Up.is_down());
    }
}
