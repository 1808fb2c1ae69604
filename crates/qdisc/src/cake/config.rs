//! CAKE's configuration: what the words of `tc` mean together.

use weir_core::{Duration, Rate};

use super::ack_filter::AckFilter;
use super::diffserv::Preset;
use super::flows::Isolation;
use super::options::CakeOptions;
use super::shaper::Overhead;
use crate::Device;
use crate::tc::{QueueSpec, SpecError};

/// A CAKE as it was asked for.
#[derive(Debug)]
pub(super) struct Config {
    /// `None` for no limit.
    pub rate: Option<Rate>,
    pub autorate: bool,
    pub overhead: Overhead,
    pub ingress: bool,
    pub preset: &'static Preset,
    pub isolation: Isolation,
    pub target: Duration,
    pub interval: Duration,
    pub ack_filter: AckFilter,
    pub wash: bool,
    /// The bits of a packet's mark that choose its tin; 0 for none.
    pub fwmark: u32,
    /// `None` for one that follows from rate and `rtt`.
    pub memory_limit: Option<u64>,
}

impl Config {
    pub fn read(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: CakeOptions = spec.read(device)?;
        refuse_what_has_no_meaning(&options)?;
        let interval = options.interval();
        let microseconds = (interval.as_micros() / TARGETS_AN_INTERVAL).max(1);
        Ok(Self {
            rate: options.rate(),
            autorate: options.autorate(),
            overhead: options.overhead(),
            ingress: options.ingress.value,
            preset: Preset::of(options.diffserv.value),
            isolation: Isolation::of(options.flow_mode.value),
            target: Duration::from_micros(microseconds),
            interval,
            ack_filter: options.ack_filter.value,
            wash: options.wash.value,
            fwmark: options.fwmark.unwrap_or(0),
            memory_limit: options.memlimit.filter(|&bytes| bytes > 0),
        })
    }
}

fn refuse_what_has_no_meaning(options: &CakeOptions) -> Result<(), SpecError> {
    if options.nat.value {
        return Err(SpecError::new(
            "cake: `nat` asks a router's address translation, and there is none here: leave it out",
        ));
    }
    if !options.split_gso.value {
        return Err(SpecError::new(
            "cake: `no-split-gso` keeps GSO packets whole, but packets come to queues cut here: leave \
             it out",
        ));
    }
    Ok(())
}

/// `tc` sets the target to a twentieth of the round trip.
const TARGETS_AN_INTERVAL: u64 = 20;

#[cfg(test)]
mod tests {
    use super::super::shaper::Cells;
    use super::*;

    fn config(words: &str) -> Config {
        let spec = QueueSpec::parse(&format!("cake {words}")).unwrap();
        Config::read(&spec, &Device::default()).unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    /// Overhead as `tc -d qdisc show` of iproute2 6.1 prints it.
    fn shown(words: &str) -> String {
        let Overhead { beyond_ip, bytes, least, cells } = config(words).overhead;
        let mut shown = String::from(match (beyond_ip, cells) {
            (true, Cells::None) => "noatm",
            (true, Cells::Atm) => "atm",
            (true, Cells::Ptm) => "ptm",
            (false, Cells::None) => "raw",
            (false, Cells::Atm) => "raw atm",
            (false, Cells::Ptm) => "raw ptm",
        });
        shown += &format!(" overhead {bytes}");
        if least > 0 {
            shown += &format!(" mpu {least}");
        }
        shown
    }

    #[test]
    fn overhead_is_read_as_tc_reads_it() {
        for (words, expected) in [
            ("", "raw overhead 0"),
            ("raw", "raw overhead 0"),
            ("conservative", "atm overhead 48"),
            ("overhead -20", "noatm overhead -20"),
            ("overhead 0", "noatm overhead 0"),
            ("atm", "raw atm overhead 0"),
            ("ptm overhead 10 noatm", "noatm overhead 10"),
            ("ipoa-vcmux", "atm overhead 8"),
            ("ipoa-llcsnap", "atm overhead 16"),
            ("bridged-vcmux", "atm overhead 24"),
            ("bridged-llcsnap", "atm overhead 32"),
            ("pppoa-vcmux", "atm overhead 10"),
            ("pppoa-llc", "atm overhead 14"),
            ("pppoe-vcmux", "atm overhead 32"),
            ("pppoe-llcsnap", "atm overhead 40"),
            ("pppoe-ptm", "ptm overhead 30"),
            ("bridged-ptm", "ptm overhead 22"),
            ("ethernet", "noatm overhead 38 mpu 84"),
            ("docsis", "noatm overhead 18 mpu 64"),
            ("ether-vlan", "noatm overhead 4"),
            ("ether-vlan ether-vlan", "noatm overhead 8"),
            ("ethernet ether-vlan", "noatm overhead 42 mpu 84"),
            ("ethernet docsis", "noatm overhead 56 mpu 64"),
            ("ethernet overhead 10", "noatm overhead 10 mpu 84"),
            ("overhead 10 ethernet", "noatm overhead 48 mpu 84"),
            ("overhead 8 pppoe-ptm", "ptm overhead 38"),
            ("pppoe-vcmux ptm", "ptm overhead 32"),
            ("raw overhead 5", "raw overhead 5"),
            ("overhead 5 raw", "raw overhead 0"),
            ("raw ethernet", "raw overhead 38 mpu 84"),
            ("conservative raw", "raw overhead 0"),
            ("conservative overhead 10", "atm overhead 10"),
            ("mpu 100 ethernet", "noatm overhead 38 mpu 84"),
            ("ethernet mpu 64", "noatm overhead 38 mpu 64"),
            ("ethernet atm", "atm overhead 38 mpu 84"),
            ("mpu 64", "raw overhead 0 mpu 64"),
            ("atm ptm", "raw ptm overhead 0"),
            ("atm raw", "raw overhead 0"),
            ("pppoe-ptm docsis", "noatm overhead 48 mpu 64"),
            ("docsis pppoe-ptm", "ptm overhead 48 mpu 64"),
            ("pppoe-vcmux conservative", "atm overhead 48"),
            ("conservative pppoe-vcmux", "atm overhead 80"),
            ("ethernet raw mpu 70", "raw overhead 0 mpu 70"),
        ] {
            assert_eq!(shown(words), expected, "cake {words}");
        }
    }

    #[test]
    fn the_last_word_counts() {
        assert_eq!(config("").interval, Duration::from_millis(100));
        assert_eq!(config("").target, Duration::from_millis(5));
        assert_eq!(config("rtt 50ms metro").interval, Duration::from_millis(10));
        assert_eq!(config("metro rtt 50ms").interval, Duration::from_millis(50));
        assert_eq!(config("rtt 50ms").target, Duration::from_micros(2_500));
        assert_eq!(config("rtt 20us").target, Duration::from_micros(1));
        assert_eq!(config("interplanetary").target, Duration::from_secs(50));
        assert_eq!(config("bandwidth 5mbit unlimited").rate, None);
        assert_eq!(config("unlimited bandwidth 5mbit").rate, Some(Rate::from_mbit(5)));
        assert_eq!(config("ack-filter ack-filter-aggressive").ack_filter, AckFilter::Aggressive);
        // `bandwidth` and `unlimited` end `autorate-ingress`, which keeps the rate before it.
        for (words, autorate, rate) in [
            ("bandwidth 5mbit autorate-ingress", true, Some(5)),
            ("autorate-ingress bandwidth 5mbit", false, Some(5)),
            ("bandwidth 9mbit autorate-ingress bandwidth 5mbit", false, Some(5)),
            ("autorate-ingress unlimited", false, None),
            ("bandwidth 5mbit unlimited autorate-ingress", true, None),
            ("autorate-ingress bandwidth 5mbit autorate-ingress", true, Some(5)),
            ("autorate-ingress", true, None),
        ] {
            let config = config(words);
            assert_eq!(
                (config.autorate, config.rate),
                (autorate, rate.map(Rate::from_mbit)),
                "{words}"
            );
        }
        assert_eq!(config("besteffort diffserv8").preset.plans.len(), 8);
        assert_eq!(config("diffserv8 besteffort").preset.plans.len(), 1);
        assert_eq!(config("ack-filter no-ack-filter").ack_filter, AckFilter::Off);
        assert!(
            !config("nat nonat no-split-gso split-gso").wash,
            "what is taken back is not refused"
        );
        assert!(config("wash").wash && !config("wash nowash").wash);
        assert!(config("ingress").ingress && !config("ingress egress").ingress);
        assert_eq!(config("hosts dual-dsthost").isolation, Isolation::DUAL_DSTHOST);
        assert_eq!(config("").isolation, Isolation::TRIPLE_ISOLATE);
        assert_eq!(config("diffserv").preset.plans.len(), 4, "tc's old name of diffserv4");
        assert_eq!(config("memlimit 0").memory_limit, None, "as the kernel reads it");
        assert_eq!(config("memlimit 64kb nonat split-gso").memory_limit, Some(65_536));
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_a_sentence() {
        let error = |words: &str| {
            QueueSpec::parse(&format!("cake {words}"))
                .and_then(|spec| Config::read(&spec, &Device::default()))
                .expect_err(words)
                .to_string()
        };
        for (words, expected) in [
            (
                "nat",
                "cake: `nat` asks a router's address translation, and there is none here: leave it out",
            ),
            (
                "no-split-gso",
                "cake: `no-split-gso` keeps GSO packets whole, but packets come to queues cut here: \
                 leave it out",
            ),
            ("overhead 300", "cake: `overhead 300`: write a number from -64 to 256"),
            ("overhead -65", "cake: `overhead -65`: write a number from -64 to 256"),
            ("mpu 300", "cake: `mpu 300`: write a number from 0 to 256"),
            ("rtt 0", "cake: `rtt 0`: write a time from 1us to 4294s"),
            ("rtt 2h", "cake: `rtt 2h`: write a number that is not negative with ns, us, ms or s"),
        ] {
            assert_eq!(error(words), expected);
        }
        assert_eq!(
            error("datacenter"),
            "cake: `datacenter` is neither a parameter nor a queue discipline: did you mean \
             `datacentre`?"
        );
        let unlike = error("everything");
        assert!(unlike.contains("known parameters: bandwidth, unlimited"), "{unlike}");
        assert!(unlike.contains("lan, metro, regional"), "{unlike}");
    }
}
