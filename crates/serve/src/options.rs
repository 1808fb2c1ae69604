//! Options of a server: the words of its command line.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use hyper::Uri;
use weir_core::Rate;
use weir_core::units::{parse_duration, parse_rate};

use crate::service::{SERVICES, Service};

/// Answers measurements: Weir's own, and those of the clients of other speed tests (`--without` names all).
///
/// Without options it serves everybody who can reach this machine, within limits: a browser page, HTTP,
/// HTTPS and Weir's datagrams on port 8080, irtt on UDP port 2112. Ctrl-C ends it.
#[derive(Clone, Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Options {
    /// Where to listen, for TCP and UDP; may be given several times [default: port 8080 of all addresses].
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub listen: Vec<Listen>,

    /// File with the shared secret that clients must know; its first line counts.
    #[arg(long, value_name = "FILE")]
    pub auth: Option<PathBuf>,

    /// File with the certificate chain for TLS, PEM [default: one made at the start].
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,

    /// File with the private key of the certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Services that are left out.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub without: Vec<Service>,

    /// UDP port for irtt.
    #[arg(long, value_name = "PORT", default_value_t = weir_speedtest::protocol::irtt::PORT, value_parser = port, allow_negative_numbers = true)]
    pub irtt_port: u16,

    /// Longest duration of a test or a flow.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = duration)]
    pub max_duration: Duration,

    /// Highest rate for one client address, in each direction, such as 100mbit [default: no bound].
    #[arg(long, value_name = "RATE", value_parser = bits_per_second)]
    pub max_rate: Option<u64>,

    /// Highest rate of UDP loads for one client address, in each direction; --max-rate bounds it too.
    #[arg(long, value_name = "RATE", default_value = "100mbit", value_parser = bits_per_second)]
    pub max_udp_rate: u64,

    /// Tests at a time.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count, allow_negative_numbers = true)]
    pub max_tests: u32,

    /// Tests at a time of one client address (IPv6: of one /64).
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count, allow_negative_numbers = true)]
    pub max_tests_per_address: u32,

    /// Connections at a time.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = count, allow_negative_numbers = true)]
    pub max_connections: u32,

    /// Connections at a time of one client address (IPv6: of one /64).
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = count, allow_negative_numbers = true)]
    pub max_connections_per_address: u32,

    /// Datagrams a second that are echoed to one client.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = count, allow_negative_numbers = true)]
    pub max_echo_rate: u32,

    /// Show metrics at /metrics to everybody, not only to this machine.
    #[arg(long)]
    pub public_metrics: bool,

    /// How clients reach this server, where that is not what they ask for, as behind a proxy; the
    /// responsiveness test is told its URLs by it [default: what the client asked for].
    #[arg(long, value_name = "URL")]
    pub public_url: Option<PublicUrl>,

    /// Write the log, on standard error, as one JSON object a line.
    #[arg(long)]
    pub json: bool,

    /// Log connections and refusals too, not only tests.
    #[arg(long, short)]
    pub verbose: bool,
}

/// An `https` URL without what follows the path, such as `https://example.net/weir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

/// A port, of one address or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// The port of all addresses of this machine.
    Everywhere(u16),
    /// The port of one address.
    At(SocketAddr),
}

impl Options {
    /// The options of a server that is told nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::parse_from(["weir serve"])
    }

    /// The longest session: longer than any load that a client may ask for and what a run has beside it, and short enough
    /// that what was forgotten goes away.
    pub(crate) fn session(&self) -> Duration {
        SESSION.max(self.max_duration + BESIDE_A_LOAD)
    }

    /// Addresses and ports to listen on.
    pub(crate) fn places(&self) -> Vec<Listen> {
        if self.listen.is_empty() { vec![Listen::Everywhere(PORT)] } else { self.listen.clone() }
    }

    /// UDP loads of one address in each direction, in bit/s at most.
    pub(crate) fn most_udp(&self) -> u64 {
        self.max_rate.map_or(self.max_udp_rate, |rate| rate.min(self.max_udp_rate))
    }

    /// The services that the server offers: all but those of `--without`.
    pub(crate) fn services(&self) -> BTreeSet<Service> {
        SERVICES.iter().copied().filter(|service| !self.without.contains(service)).collect()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Listen {
    /// The addresses to bind. One that this machine does not know at all (it may be without IPv6) can be
    /// left out where all were meant.
    pub(crate) fn addresses(self) -> Vec<SocketAddr> {
        match self {
            Self::At(address) => vec![address],
            Self::Everywhere(port) => vec![
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
                SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
            ],
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
            return Ok(Self::Everywhere(port));
        }
        text.parse().map(Self::At).map_err(|_| {
            "write a port (8080), or an address with a port (192.0.2.1:8080, [2001:db8::1]:8080)".into()
        })
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uri = text.parse::<Uri>().ok().filter(|uri| {
            uri.scheme_str() == Some("https")
                && uri.query().is_none()
                && !text.contains('#')
                && uri.authority().is_some_and(|one| !one.as_str().contains('@'))
                && uri.port().is_none_or(|port| port.as_u16() > 0)
                && uri.host().is_some_and(|host| !host.is_empty())
        });
        let after_scheme = uri.as_ref().and_then(|_| text.get("https://".len()..));
        let said = after_scheme.map(|rest| Self(rest.trim_end_matches('/').to_owned()));
        said.ok_or_else(|| "write https://HOST, https://HOST:PORT or https://HOST/PATH".into())
    }
}

/// The URL without its scheme.
impl fmt::Display for PublicUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).ok().filter(|_| has_unit(text));
    let duration = time.map(|time| Duration::from_nanos(time.as_nanos()));
    let (least, most) = (MIN_DURATION.as_secs(), MAX_DURATION.as_secs());
    duration
        .filter(|duration| (MIN_DURATION..=MAX_DURATION).contains(duration))
        .ok_or_else(|| format!("write a time from {least}s to {most}s with its unit"))
}

fn bits_per_second(text: &str) -> Result<u64, String> {
    let rate = parse_rate(text).ok().filter(|_| has_unit(text));
    rate.filter(|rate| *rate >= Rate::MIN_LINE)
        .map(Rate::as_bps)
        .ok_or_else(|| "write a rate of 1kbit or more with its unit, such as 100mbit".into())
}

/// Without a unit `tc` reads microseconds and bits a second, which nobody means here.
fn has_unit(text: &str) -> bool {
    text.ends_with(|last: char| last.is_ascii_alphabetic())
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "write a port from 0 (any that is free) to 65535".into())
}

fn count(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("write a number from 1 to {}", u32::MAX))
}

/// OoklaServer's, and one that needs no privilege.
const PORT: u16 = 8080;
const MIN_DURATION: Duration = Duration::from_secs(1);
const MAX_DURATION: Duration = Duration::from_secs(86_400);
/// What a session may always last.
const SESSION: Duration = Duration::from_secs(3600);
/// Time for the phases without load of a run.
const BESIDE_A_LOAD: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ports_or_addresses_with_ports() {
        assert_eq!("8080".parse(), Ok(Listen::Everywhere(8080)));
        assert_eq!(":80".parse(), Ok(Listen::Everywhere(80)));
        assert_eq!("[::1]:80".parse(), Ok(Listen::At("[::1]:80".parse().unwrap())));
        assert!("localhost:80".parse::<Listen>().is_err());
        assert!("99999".parse::<Listen>().is_err());
        assert!("::1".parse::<Listen>().is_err(), "an address needs a port");
    }

    #[test]
    fn everything_is_served_unless_told_otherwise() {
        assert_eq!(Options::new().services().len(), SERVICES.len());
        let options = Options::parse_from(["weir serve", "--without", "irtt,ookla"]);
        let services = options.services();
        let names: Vec<_> = services.iter().map(|one| one.name()).collect();
        assert!(!names.contains(&"irtt") && !names.contains(&"ookla"), "{names:?}");
        assert!(names.contains(&"ndt7"), "{names:?}");
    }
}
