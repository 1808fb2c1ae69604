//! The network stack's own counters of a place (`/proc/net/snmp`, `netstat`, `snmp6`).

use std::collections::BTreeMap;
use std::fs;

/// Counters by name, such as `TcpExt:TCPTimeouts`.
pub(crate) type Counters = BTreeMap<String, u64>;

/// The counters where the calling thread is. A file that this kernel does not have counts nothing.
pub(crate) fn read() -> Counters {
    let text = |name| fs::read_to_string(format!("{FOLDER}/{name}")).unwrap_or_default();
    let mut counters = table(&text("snmp"));
    counters.extend(table(&text("netstat")));
    counters.extend(list(&text("snmp6")));
    counters
}

/// Counts since `before` that are not zero. Gauges such as `Tcp:CurrEstab` that fell are
/// left out.
pub(crate) fn since(before: &Counters, after: Counters) -> Counters {
    after
        .into_iter()
        .filter_map(|(name, count)| {
            let more = count.saturating_sub(before.get(&name).copied().unwrap_or(0));
            (more > 0).then_some((name, more))
        })
        .collect()
}

/// Pairs of lines: a group's name with the names of its counters, then the name with the values.
fn table(text: &str) -> Counters {
    let mut counters = Counters::new();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let Some((group, names)) = names.split_once(": ") else { continue };
        let Some((_, values)) = values.split_once(": ") else { continue };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            // Some values are -1: no limit, and no count either.
            if let Ok(value) = value.parse() {
                counters.insert(format!("{group}:{name}"), value);
            }
        }
    }
    counters
}

/// A name and a value on each line.
fn list(text: &str) -> Counters {
    let pair = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The calling thread's view: threads of one process may live in different places.
const FOLDER: &str = "/proc/thread-self/net";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_lists_are_read() {
        let counters = table("Tcp: RtoMax MaxConn InSegs\nTcp: 120000 -1 7\nUdp: In\nUdp: 3\n");
        assert_eq!(counters.get("Tcp:InSegs"), Some(&7));
        assert_eq!(counters.get("Tcp:MaxConn"), None);
        assert_eq!(counters.get("Udp:In"), Some(&3));
        assert_eq!(list("Ip6InReceives      \t12\nbroken\n").get("Ip6InReceives"), Some(&12));
    }

    #[test]
    fn only_what_was_counted_since_is_kept() {
        let before = table("Tcp: A B C\nTcp: 1 5 9\n");
        let after = table("Tcp: A B C D\nTcp: 4 5 2 6\n");
        let since = since(&before, after);
        assert_eq!(since, [("Tcp:A".to_owned(), 3), ("Tcp:D".to_owned(), 6)].into());
    }
}
