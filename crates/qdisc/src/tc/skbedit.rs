//! `action skbedit`: what a filter writes beside a packet's bytes (tc-skbedit(8)).

use weir_core::{FlowLabel, Priority};

use super::{Handle, SpecError};

/// Fields that a filter writes on packets (`action skbedit`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The priority (`skb->priority`), if one was written.
    pub priority: Option<Priority>,
    /// The mark (`skb->mark`) and the bits of it that are written.
    pub mark: Option<(u32, u32)>,
}

impl Edit {
    /// Reads what stands behind `skbedit`, and returns the rest.
    pub(super) fn read<'w, 's>(words: &'w [&'s str]) -> Result<(Self, &'w [&'s str]), SpecError> {
        let mut edit = Self::default();
        let mut words = words;
        loop {
            words = match words {
                ["priority", value, rest @ ..] => {
                    edit.priority = Some(priority(value)?);
                    rest
                }
                ["mark", value, rest @ ..] => {
                    edit.mark = Some(mark(value)?);
                    rest
                }
                [word @ ("queue_mapping" | "ptype" | "inheritdsfield"), ..] => {
                    return Err(SpecError::new(format!(
                        "`skbedit {word}` has no meaning here: `priority` and `mark` have"
                    )));
                }
                _ => break,
            };
        }
        if edit == Self::default() {
            return Err(SpecError::new("`skbedit` needs `priority CLASS` or `mark MARK[/MASK]`"));
        }
        // What becomes of the packet then: it goes on in all of these.
        let rest = words.strip_prefix(&["pipe"]).or_else(|| words.strip_prefix(&["pass"]));
        Ok((edit, rest.or_else(|| words.strip_prefix(&["ok"])).unwrap_or(words)))
    }

    /// Writes it.
    pub(crate) const fn apply(self, label: &mut FlowLabel) {
        if self.priority.is_some() {
            label.priority = self.priority;
        }
        if let Some((mark, mask)) = self.mark {
            label.mark = label.mark & !mask | mark & mask;
        }
    }
}

/// A class, or a small number in hexadecimal.
fn priority(text: &str) -> Result<Priority, SpecError> {
    let number = match Handle::parse(text) {
        Some(class) => Some(u32::from(class.major) << 16 | u32::from(class.minor)),
        None if text == "none" => Some(0),
        None => u32::from_str_radix(text, 16).ok(),
    };
    number.and_then(Priority::new).ok_or_else(|| {
        SpecError::new(format!(
            "`skbedit priority {text}`: write a class such as `1:10`, or a hexadecimal number"
        ))
    })
}

fn mark(text: &str) -> Result<(u32, u32), SpecError> {
    masked(text, u32::MAX).ok_or_else(|| {
        SpecError::new(format!("`skbedit mark {text}`: write MARK or MARK/MASK of 32 bits"))
    })
}

/// `VALUE` or `VALUE/MASK`, decimal or, behind `0x`, hexadecimal; the mask is `all` where none is written.
pub(super) fn masked(text: &str, all: u32) -> Option<(u32, u32)> {
    match text.split_once('/') {
        None => Some((number(text)?, all)),
        Some((value, mask)) => Some((number(value)?, number(mask)?)),
    }
}

/// A decimal number or, behind `0x`, a hexadecimal one.
pub(super) fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
