//! `weir-agent ping`: round trips to a host.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;

use lexopt::prelude::*;
use nix::errno::Errno;
use weir_core::{Dscp, Duration};
use weir_scenario::file::Written;
use weir_scenario::file::quantity::{no_dscp, read_time};
use weir_scenario::file::shape::host_in;
use weir_sockets::sys::message::IcmpError;
use weir_sockets::{PingEvent, PingMethod, PingSettings, address_of, run_pings};

use crate::ending::Ending;
use crate::failure::Failure;
use crate::once::Once;
use crate::terminal::print;
use crate::words::{text, unexpected, whole};

pub(crate) fn run(words: Vec<OsString>) -> Result<(), Failure> {
    let Some((host, settings)) = parse(words)? else { return print(HELP) };
    settings.check().map_err(|error| Failure::usage(error.to_string()))?;
    let ending = Ending::watch()?;
    let mut seen = Seen::default();
    let mut failed = None;
    let mut told = |_, events: Vec<PingEvent>| {
        for event in events {
            match event {
                PingEvent::Row(row, by) => {
                    if let Err(failure) = print(&seen.line(row.seq, row.rtt, by)) {
                        failed = Some(failure);
                    }
                }
                PingEvent::Refused(errno) => *seen.refused.entry(errno).or_default() += 1,
            }
        }
        failed.is_none() && !ending.is_asked()
    };
    let done = run_pings(&settings, &mut told);
    if let Some(failure) = failed {
        return Err(failure);
    }
    done.map_err(|error| Failure::other(error.to_string()))?;
    print(&seen.summary(&host))?;
    seen.failure(&host).map_or(Ok(()), |why| Err(Failure::other(why)))
}

/// Pings that were seen.
#[derive(Default)]
struct Seen {
    sent: u64,
    rtts_ms: Vec<f64>,
    /// How many ICMP errors answered, by who sent them and what they say.
    answered_by: BTreeMap<String, u64>,
    /// How many pings the kernel or the host refused, by the number of the error.
    refused: BTreeMap<i32, u64>,
}

impl Seen {
    /// Counts a ping, which `by` answered if not the host itself did: its line.
    fn line(&mut self, seq: u32, rtt: Option<Duration>, by: Option<IcmpError>) -> String {
        self.sent += 1;
        let Some(rtt) = rtt else { return format!("{seq}  lost\n") };
        let rtt_ms = rtt.as_nanos() as f64 / 1e6;
        self.rtts_ms.push(rtt_ms);
        let Some(by) = by.map(in_words) else { return format!("{seq}  {rtt_ms:.2} ms\n") };
        let line = format!("{seq}  {rtt_ms:.2} ms, {by}\n");
        *self.answered_by.entry(by).or_default() += 1;
        line
    }

    fn summary(&mut self, host: &str) -> String {
        let (sent, answered) = (self.sent, self.rtts_ms.len());
        self.rtts_ms.sort_by(f64::total_cmp);
        let mut said = String::new();
        if let [Some(least), Some(most)] = [self.rtts_ms.first(), self.rtts_ms.last()] {
            let median =
                f64::midpoint(self.rtts_ms[(answered - 1) / 2], self.rtts_ms[answered / 2]);
            let mean = self.rtts_ms.iter().sum::<f64>() / answered as f64;
            said += &format!(
                "{host}: {answered} of {sent} pings answered; least {least:.2}, median {median:.2}, mean {mean:.2}, \
                 greatest {most:.2} ms\n"
            );
        }
        for (by, count) in &self.answered_by {
            said += &format!("answered by {by}: {count}\n");
        }
        for (&errno, count) in &self.refused {
            let why = Errno::from_raw(errno).desc().to_lowercase();
            said += &format!("{why}: {count}\n");
        }
        said
    }

    /// Why this was no ping at all, if nobody answered.
    fn failure(&self, host: &str) -> Option<String> {
        match self.sent {
            _ if !self.rtts_ms.is_empty() => None,
            0 => None,
            1 => Some(format!("the ping was not answered by `{host}`")),
            sent => Some(format!("none of {sent} pings was answered by `{host}`")),
        }
    }
}

/// An ICMP error with who sent it, as `weir ping` names both.
fn in_words(error: IcmpError) -> String {
    let IcmpError { icmp, from, .. } = error;
    let is = |what: &dyn Fn(bool) -> bool| {
        from.map_or_else(|| what(true) || what(false), |from| what(from.is_ipv4()))
    };
    let said = if is(&|v4| icmp.is_time_exceeded(v4)) {
        "time exceeded".to_owned()
    } else if is(&|v4| icmp.is_closed_port(v4)) {
        "port unreachable".to_owned()
    } else {
        format!("ICMP type {} code {}", icmp.kind, icmp.code)
    };
    let from = from.map_or_else(|| "a router".to_owned(), |from| from.to_string());
    format!("{from} ({said})")
}

/// The host and the pings; `None` if help was asked for.
fn parse(words: Vec<OsString>) -> Result<Option<(String, PingSettings)>, Failure> {
    let (mut host, mut method, mut port) = (None, "icmp".to_owned(), None);
    let (mut count, mut ttl, mut payload, mut dscp) = (None, None, None, Dscp::BE);
    let (mut period, mut patience) = (Duration::from_millis(200), Duration::from_secs(5));
    let mut parser = lexopt::Parser::from_args(words);
    let mut once = Once::default();
    while let Some(word) = parser.next()? {
        if let Long(name) = word {
            once.see(name)?;
        }
        match word {
            Long("help") | Short('h') => return Ok(None),
            Long("method") => method = text(&mut parser, "method")?,
            Long("port") => port = Some(whole(&mut parser, "port", 1, 65_535)?),
            Long("count") => count = Some(whole(&mut parser, "count", 1, weir_sockets::MAX_PINGS)?),
            Long("ttl") => ttl = Some(whole(&mut parser, "ttl", 1, 255)?),
            Long("payload") => {
                let most = u64::from(weir_sockets::MAX_PAYLOAD_BYTES);
                payload = Some(whole(&mut parser, "payload", 0, most)?);
            }
            Long("ping") => period = time(&mut parser, "ping")?,
            Long("timeout") => patience = time(&mut parser, "timeout")?,
            Long("dscp") => {
                let name = text(&mut parser, "dscp")?;
                dscp = Dscp::parse(&name)
                    .ok_or_else(|| Failure::usage(format!("dscp: {}", no_dscp(&name))))?;
            }
            Value(name) if host.is_none() => host = Some(name.string()?),
            other => return Err(unexpected(other, HELP)),
        }
    }
    let Some(host) = host else { return Err(Failure::usage("say whom: `weir-agent ping HOST`")) };
    let (method, usual_port, usual_bytes) = match method.as_str() {
        "icmp" if port.is_some() => {
            return Err(Failure::usage("port: ICMP has none; leave it out"));
        }
        "icmp" => (PingMethod::Icmp, 0, 56),
        "udp" => (PingMethod::Udp, 33_434, 60),
        "tcp" => (PingMethod::Tcp, 443, 0),
        other => {
            return Err(Failure::usage(format!("method `{other}`: write 'icmp', 'udp' or 'tcp'")));
        }
    };
    let host = host_in(&host).map_err(|said| Failure::usage(format!("host {said}")))?;
    let address =
        address_of(&host).map_err(|error| Failure::other(format!("host `{host}`: {error}")))?;
    let settings = PingSettings {
        server: SocketAddr::new(address, port.unwrap_or(usual_port) as u16),
        method,
        payload_bytes: payload.unwrap_or(usual_bytes) as u32,
        dscp: dscp.get(),
        ttl: ttl.map(|ttl| ttl as u8),
        period,
        count,
        patience,
    };
    Ok(Some((host, settings)))
}

fn time(parser: &mut lexopt::Parser, name: &str) -> Result<Duration, Failure> {
    let word = text(parser, name)?;
    let read = read_time(&Written::from(word)).map(Duration::from_nanos);
    read.map_err(|says| Failure::usage(format!("{name}: {says}")))
}

const HELP: &str = "Pings a host until Ctrl-C.

Usage: weir-agent ping HOST [OPTIONS]

  --method KIND    `icmp` (the default), `udp` or `tcp` (how long a connection takes to open)
  --port PORT      port of HOST; by default 33434 for udp, 443 for tcp
  --count N        how many are sent
  --ping TIME      time between two pings; by default 200ms
  --timeout TIME   a ping that is not answered for so long is lost; by default 5s
  --payload BYTES  bytes behind the headers
  --ttl N          time to live: the router at which it ends answers
  --dscp NAME      DSCP of all packets, such as EF

Exit codes: 0 done, 1 no ping was answered, 2 pings cannot be sent like that.
";

#[cfg(test)]
mod tests {
    use weir_sockets::sys::message::Icmp;

    use super::*;

    #[test]
    fn figures_are_those_of_the_answers() {
        let mut seen = Seen::default();
        assert_eq!(seen.line(0, Some(Duration::from_millis(30)), None), "0  30.00 ms\n");
        assert_eq!(seen.line(1, None, None), "1  lost\n");
        assert_eq!(seen.line(2, Some(Duration::from_millis(10)), None), "2  10.00 ms\n");
        assert_eq!(
            seen.summary("h"),
            "h: 2 of 3 pings answered; least 10.00, median 20.00, mean 20.00, greatest 30.00 ms\n"
        );
        assert_eq!(seen.failure("h"), None);
    }

    #[test]
    fn a_router_that_answers_is_named() {
        let mut seen = Seen::default();
        let by = |kind, code, from: Option<&str>| {
            let from = from.map(|from| from.parse().unwrap());
            Some(IcmpError { icmp: Icmp { kind, code }, from, errno: Errno::EHOSTUNREACH as i32 })
        };
        let mut line = |error| seen.line(7, Some(Duration::from_millis(2)), error);
        let said = "7  2.00 ms, 10.0.0.2 (time exceeded)\n";
        assert_eq!(line(by(11, 0, Some("10.0.0.2"))), said);
        assert_eq!(line(by(11, 0, Some("10.0.0.2"))), said);
        assert_eq!(line(by(3, 0, Some("fd00::2"))), "7  2.00 ms, fd00::2 (time exceeded)\n");
        assert_eq!(line(by(1, 4, Some("fd00::2"))), "7  2.00 ms, fd00::2 (port unreachable)\n");
        assert_eq!(line(by(3, 1, None)), "7  2.00 ms, a router (ICMP type 3 code 1)\n");
        let summary = seen.summary("h");
        assert!(summary.starts_with("h: 5 of 5 pings answered; "), "{summary}");
        assert!(summary.contains("\nanswered by 10.0.0.2 (time exceeded): 2\n"), "{summary}");
    }

    #[test]
    fn no_answer_at_all_is_a_failure() {
        let mut seen = Seen::default();
        assert_eq!((seen.summary("h"), seen.failure("h")), (String::new(), None), "none was sent");
        seen.line(0, None, None);
        assert_eq!(seen.failure("h").as_deref(), Some("the ping was not answered by `h`"));
        seen.line(1, None, None);
        seen.refused.insert(Errno::ECONNREFUSED as i32, 2);
        assert_eq!(seen.summary("h"), "connection refused: 2\n");
        assert_eq!(seen.failure("h").as_deref(), Some("none of 2 pings was answered by `h`"));
    }

    #[test]
    fn wrong_words_are_refused() {
        for (words, said) in [
            ("", "say whom: `weir-agent ping HOST`"),
            (
                "[127.0.0.1]",
                "host `[127.0.0.1]`: brackets stand around an address of IPv6, such as [2001:db8::1]: write one so, or \
                 without brackets",
            ),
            ("h --count 0", "count `0`: write a whole number from 1 to 4294967295"),
            ("h --ping 5", "ping: `5` is a time without its unit: write `5s`, `5ms` or `5us`"),
            ("h --count 3 --count 4", "--count is given twice: write it once"),
            ("h --method gre", "method `gre`: write 'icmp', 'udp' or 'tcp'"),
            (
                "h --dscp XX",
                "dscp: `XX` is no DSCP: write a name such as EF or CS1, or a number from 0 to 63",
            ),
        ] {
            let words = words.split_whitespace().map(OsString::from).collect();
            let failure = parse(words).err().map(|failure| failure.message);
            assert_eq!(failure.as_deref(), Some(said));
        }
    }
}
