//! Colours: how a marker tells a queue which packets are within their profile.
//!
//! A colour travels as drop precedence of the assured forwarding classes (RFC 2597): AFx1 is green, AFx2
//! yellow, AFx3 red. A queue that knows only IN and OUT, as RIO, takes green for IN and all else for OUT.

use weir_core::Dscp;

/// Colour that a marker gives to a packet (RFC 2697, RFC 2698).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Colour {
    /// Within the profile: IN.
    Green,
    /// Beyond what is committed, within what is tolerated.
    Yellow,
    /// Beyond both: OUT.
    Red,
}

impl Colour {
    /// All colours, from the one that is dropped last.
    pub const ALL: [Self; 3] = [Self::Green, Self::Yellow, Self::Red];

    /// The colour that a code point of assured forwarding tells; `None` for any other code point.
    #[must_use]
    pub const fn of(dscp: Dscp) -> Option<Self> {
        match (dscp.get() >> 3, dscp.get() & 0b111) {
            (1..=4, 0b010) => Some(Self::Green),
            (1..=4, 0b100) => Some(Self::Yellow),
            (1..=4, 0b110) => Some(Self::Red),
            _ => None,
        }
    }

    /// The code point of this colour in assured forwarding class `class`, 1 to 4.
    #[must_use]
    pub fn dscp(self, class: u8) -> Dscp {
        assert!((1..=4).contains(&class), "assured forwarding has no class {class}");
        Dscp::new(class << 3 | (self as u8 + 1) << 1).expect("at most AF43, 38")
    }

    /// The colour's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_the_drop_precedences_of_assured_forwarding() {
        let names: Vec<String> = (1..=4)
            .flat_map(|class| Colour::ALL.map(|colour| colour.dscp(class).to_string()))
            .collect();
        assert_eq!(names[..4], ["AF11", "AF12", "AF13", "AF21"]);
        assert_eq!(names[11], "AF43");
        for value in 0..64 {
            let dscp = Dscp::new(value).unwrap();
            let expected = dscp.to_string().strip_prefix("AF").map(|digits| match &digits[1..] {
                "1" => Colour::Green,
                "2" => Colour::Yellow,
                _ => Colour::Red,
            });
            assert_eq!(Colour::of(dscp), expected, "{dscp}");
        }
    }
}
