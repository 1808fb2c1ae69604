//! `weir-agent ping`: round trips to a host.

use std::ffi::OsString;
use std::net::SocketAddr;

use lexopt::prelude::*;
use weir_core::{Dscp, Duration};
use weir_scenario::file::Written;
use weir_scenario::file::quantity::{no_dscp, read_time};
use weir_sockets::{PingEvent, PingMethod, PingSettings, address_of, run_pings};

use crate::ending::Ending;
use crate::once::Once;
use crate::{Failure, print, whole};

pub(crate) fn run(words: Vec<OsString>) -> Result<(), Failure> {
    let Some((host, settings)) = parse(words)? else { return print(HELP) };
    settings.check().map_err(|error| Failure::usage(error.to_string()))?;
    let ending = Ending::watch()?;
    let mut seen = Seen::default();
    let mut failed = None;
    let mut told = |_, events: Vec<PingEvent>| {
        for event in events {
            if let PingEvent::Row(row, by) = event {
                // A router that refuses answers too, which is none of the host's.
                let rtt = if by.is_some() { None } else { row.rtt };
                if let Err(failure) = print(&seen.line(row.seq, rtt)) {
                    failed = Some(failure);
                }
            }
        }
        failed.is_none() && !ending.is_asked()
    };
    let done = run_pings(&settings, &mut told);
    if let Some(failure) = failed {
        return Err(failure);
    }
    done.map_err(|error| Failure::other(error.to_string()))?;
    print(&seen.summary(&host))
}

/// Round trips that were seen.
#[derive(Default)]
struct Seen {
    sent: u64,
    rtts_ms: Vec<f64>,
}

impl Seen {
    /// Counts a ping: its line.
    fn line(&mut self, seq: u32, rtt: Option<Duration>) -> String {
        self.sent += 1;
        match rtt {
            None => format!("{seq}  lost\n"),
            Some(rtt) => {
                let rtt_ms = rtt.as_nanos() as f64 / 1e6;
                self.rtts_ms.push(rtt_ms);
                format!("{seq}  {rtt_ms:.2} ms\n")
            }
        }
    }

    fn summary(&mut self, host: &str) -> String {
        let (sent, answered) = (self.sent, self.rtts_ms.len());
        self.rtts_ms.sort_by(f64::total_cmp);
        let [Some(least), Some(median), Some(most)] =
            [self.rtts_ms.first(), self.rtts_ms.get(answered / 2), self.rtts_ms.last()]
        else {
            return format!("{host}: none of {sent} pings was answered\n");
        };
        let mean = self.rtts_ms.iter().sum::<f64>() / answered as f64;
        format!(
            "{host}: {answered} of {sent} pings answered; least {least:.2}, median {median:.2}, mean {mean:.2}, \
             greatest {most:.2} ms\n"
        )
    }
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
            Long("method") => method = parser.value()?.string()?,
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
                let name = parser.value()?.string()?;
                dscp = Dscp::parse(&name)
                    .ok_or_else(|| Failure::usage(format!("dscp: {}", no_dscp(&name))))?;
            }
            Value(name) if host.is_none() => host = Some(name.string()?),
            other => return Err(other.unexpected().into()),
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
    let word = parser.value()?.string()?;
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
  --ttl N          time to live
  --dscp NAME      DSCP of all packets, such as EF
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_answers() {
        let mut seen = Seen::default();
        assert_eq!(seen.line(0, Some(Duration::from_millis(30))), "0  30.00 ms\n");
        assert_eq!(seen.line(1, None), "1  lost\n");
        assert_eq!(seen.line(2, Some(Duration::from_millis(10))), "2  10.00 ms\n");
        assert_eq!(
            seen.summary("h"),
            "h: 2 of 3 pings answered; least 10.00, median 30.00, mean 20.00, greatest 30.00 ms\n"
        );
        assert_eq!(Seen::default().summary("h"), "h: none of 0 pings was answered\n");
    }

    #[test]
    fn wrong_words_are_refused() {
        for (words, said) in [
            ("", "say whom: `weir-agent ping HOST`"),
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
