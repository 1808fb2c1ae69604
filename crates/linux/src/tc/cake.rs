//! Options of `cake` as the kernel takes them: include/uapi/linux/pkt_sched.h, in the words that `tc` uses.

use weir_core::{Cells, Duration, Framing, Rate};
use weir_qdisc::{CakeCells, CakeDiffserv, CakeOptions};

use super::rtnetlink::{TCA_OPTIONS, microseconds, short};
use crate::LinuxError;
use crate::message::Message;

/// Adds the options of such a `cake` to the message that makes it, as they are written. Its shaper counts `added`
/// more bytes a packet.
pub(super) fn put_as_written(message: &mut Message, options: &CakeOptions, added: u32) {
    let overhead = options.overhead();
    let cells = match overhead.cells {
        CakeCells::None => 0,
        CakeCells::Atm => 1,
        CakeCells::Ptm => 2,
    };
    let mut values = vec![
        (TCA_CAKE_ATM, cells),
        (TCA_CAKE_OVERHEAD, (overhead.bytes + added as i32) as u32),
        (TCA_CAKE_AUTORATE, options.autorate().into()),
    ];
    if overhead.least > 0 {
        values.push((TCA_CAKE_MPU, overhead.least as u32));
    }
    if !overhead.beyond_ip {
        values.push((TCA_CAKE_RAW, 0));
    }
    put_apart_from_the_link(&mut values, options, false);
    put_values(message, options.rate(), values);
}

/// Adds the options of such a `cake` to the message that makes it. Rate and
/// framing are whose shaper it is to say; addresses are those before their translation if the words or,
/// where they do not say it, `nat` does.
///
/// # Errors
/// If the words say what is not theirs to say.
pub(crate) fn put(
    message: &mut Message,
    options: &CakeOptions,
    framing: Framing,
    nat: bool,
) -> Result<(), LinuxError> {
    if let Some(word) = options.about_the_link() {
        return Err(LinuxError::new(format!(
            "cake: `{word}` cannot be written in the kernel's cake, whose rate the shaper sets and whose \
             bytes `framing` counts: leave it out"
        )));
    }
    let mut values = vec![(TCA_CAKE_OVERHEAD, framing.overhead_bytes), (TCA_CAKE_AUTORATE, 0)];
    match framing.cells {
        Cells::None => {}
        Cells::Atm => values.push((TCA_CAKE_ATM, 1)),
        Cells::Ptm => values.push((TCA_CAKE_ATM, 2)),
    }
    if framing.minimum_bytes > 0 {
        values.push((TCA_CAKE_MPU, framing.minimum_bytes));
    }
    put_apart_from_the_link(&mut values, options, nat);
    put_values(message, None, values);
    Ok(())
}

/// The options that are not about rate and bytes of the link, as they are written; `nat` is whether addresses are
/// those before their translation where the words do not say it.
fn put_apart_from_the_link(values: &mut Vec<(u16, u32)>, options: &CakeOptions, nat: bool) {
    // A kernel without tables of connections refuses the attribute, whatever it says.
    if options.nat.is_written() || nat {
        let before = if options.nat.is_written() { options.nat.value } else { nat };
        values.push((TCA_CAKE_NAT, before.into()));
    }
    if options.diffserv.is_written() {
        values.push((TCA_CAKE_DIFFSERV_MODE, options.diffserv.value as u32));
    }
    if options.flow_mode.is_written() {
        values.push((TCA_CAKE_FLOW_MODE, options.flow_mode.value as u32));
    }
    if options.has_interval() {
        let interval = options.interval();
        let target = Duration::from_nanos(interval.as_nanos() / TARGETS);
        values.push((TCA_CAKE_RTT, microseconds(interval)));
        values.push((TCA_CAKE_TARGET, microseconds(target).max(1)));
    }
    if let Some(bytes) = options.memlimit {
        values.push((TCA_CAKE_MEMORY, short(bytes)));
    }
    if let Some(mask) = options.fwmark {
        values.push((TCA_CAKE_FWMARK, mask));
    }
    for (switch, attribute) in [
        (options.wash, TCA_CAKE_WASH),
        (options.split_gso, TCA_CAKE_SPLIT_GSO),
        (options.ingress, TCA_CAKE_INGRESS),
    ] {
        if switch.is_written() {
            values.push((attribute, switch.value.into()));
        }
    }
    if options.ack_filter.is_written() {
        values.push((TCA_CAKE_ACK_FILTER, options.ack_filter.value as u32));
    }
}

/// Adds them in the order in which `tc` does.
fn put_values(message: &mut Message, rate: Option<Rate>, mut values: Vec<(u16, u32)>) {
    values.sort_by_key(|(attribute, _)| ORDER.iter().position(|other| other == attribute));
    message.nest(TCA_OPTIONS, |attributes| {
        attributes.put_u64(TCA_CAKE_BASE_RATE64, bytes_per_second(rate));
        for (attribute, value) in values {
            attributes.put_u32(attribute, value);
        }
    });
}

/// Adds the options that change nothing but the rate.
pub(crate) fn put_rate(message: &mut Message, rate: Option<Rate>) {
    message.nest(TCA_OPTIONS, |options| {
        options.put_u64(TCA_CAKE_BASE_RATE64, bytes_per_second(rate));
        options.put_u32(TCA_CAKE_AUTORATE, 0);
    });
}

/// The number of the tin of the highest priority that such a `cake` has, counted from 1.
pub(crate) const fn highest_tin(options: &CakeOptions) -> u32 {
    match options.diffserv.value {
        CakeDiffserv::Besteffort => 1,
        CakeDiffserv::Diffserv3 => 3,
        CakeDiffserv::Diffserv4 => 4,
        CakeDiffserv::Diffserv8 | CakeDiffserv::Precedence => 8,
    }
}

/// 0 is no limit.
fn bytes_per_second(rate: Option<Rate>) -> u64 {
    rate.map_or(0, |rate| rate.as_bytes_per_sec().max(1))
}

/// `tc` sets the target to a twentieth of the interval.
const TARGETS: u64 = 20;
// include/uapi/linux/pkt_sched.h
const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_CAKE_DIFFSERV_MODE: u16 = 3;
const TCA_CAKE_ATM: u16 = 4;
const TCA_CAKE_FLOW_MODE: u16 = 5;
const TCA_CAKE_OVERHEAD: u16 = 6;
const TCA_CAKE_RTT: u16 = 7;
const TCA_CAKE_TARGET: u16 = 8;
const TCA_CAKE_AUTORATE: u16 = 9;
const TCA_CAKE_MEMORY: u16 = 10;
pub(crate) const TCA_CAKE_NAT: u16 = 11;
const TCA_CAKE_RAW: u16 = 12;
const TCA_CAKE_WASH: u16 = 13;
const TCA_CAKE_MPU: u16 = 14;
const TCA_CAKE_INGRESS: u16 = 15;
const TCA_CAKE_ACK_FILTER: u16 = 16;
const TCA_CAKE_SPLIT_GSO: u16 = 17;
const TCA_CAKE_FWMARK: u16 = 18;

const ORDER: [u16; 16] = [
    TCA_CAKE_DIFFSERV_MODE,
    TCA_CAKE_ATM,
    TCA_CAKE_FLOW_MODE,
    TCA_CAKE_OVERHEAD,
    TCA_CAKE_RAW,
    TCA_CAKE_MPU,
    TCA_CAKE_RTT,
    TCA_CAKE_TARGET,
    TCA_CAKE_AUTORATE,
    TCA_CAKE_MEMORY,
    TCA_CAKE_FWMARK,
    TCA_CAKE_NAT,
    TCA_CAKE_WASH,
    TCA_CAKE_SPLIT_GSO,
    TCA_CAKE_INGRESS,
    TCA_CAKE_ACK_FILTER,
];

#[cfg(test)]
mod tests {
    use weir_qdisc::{Device, QueueSpec};

    use super::*;
    use crate::message::{About, attributes, read};

    fn options(text: &str) -> CakeOptions {
        QueueSpec::parse(text).unwrap().read(&Device::default()).unwrap()
    }

    /// The options that the kernel is told.
    fn told(text: &str, framing: Framing) -> Result<Vec<u8>, LinuxError> {
        let mut message = Message::new(0, 0, About { index: 0, handle: 0, parent: 0 });
        put(&mut message, &options(text), framing, true)?;
        Ok(options_of(message))
    }

    fn options_of(message: Message) -> Vec<u8> {
        let bytes = message.finish();
        let (_, rest) = read(&bytes[16..]).unwrap();
        attributes(rest).next().unwrap().1.to_vec()
    }

    fn number(kind: u8, value: u32) -> Vec<u8> {
        [&[8, 0, kind, 0][..], &value.to_le_bytes()].concat()
    }

    // What iproute2 6.1 sends, as strace shows it: byte by byte.
    #[test]
    fn what_tc_tells_of_cake() {
        let mut expected = vec![0x0c, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (kind, value) in [(3, 1), (5, 6), (6, 38), (14, 84), (9, 0), (11, 1)] {
            expected.extend(number(kind, value));
        }
        assert_eq!(
            told("cake diffserv4 dual-dsthost", Framing::ETHERNET).unwrap(),
            expected,
            "cake unlimited diffserv4 dual-dsthost nat overhead 38 mpu 84"
        );
        let text =
            "cake besteffort nonat wash ack-filter rtt 50ms memlimit 4mb fwmark 0xff ingress";
        let text = text.replace("0xff", "255");
        let mut adsl = vec![0x0c, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (kind, value) in [
            (3, 3),
            (4, 1),
            (6, 32),
            (7, 50_000),
            (8, 2_500),
            (9, 0),
            (10, 0x40_0000),
            (18, 0xff),
            (11, 0),
            (13, 1),
            (15, 1),
            (16, 1),
        ] {
            adsl.extend(number(kind, value));
        }
        assert_eq!(
            told(&text, Framing::ATM).unwrap(),
            adsl,
            "cake unlimited besteffort nonat wash ack-filter rtt 50ms memlimit 4mb atm overhead 32 fwmark 0xff \
             ingress"
        );
    }

    #[test]
    fn what_tc_tells_of_a_cake_with_its_own_rate() {
        let say = |text: &str, added| {
            let mut message = Message::new(0, 0, About { index: 0, handle: 0, parent: 0 });
            put_as_written(&mut message, &options(text), added);
            options_of(message)
        };
        let expected = |rate: [u8; 4], values: &[(u8, u32)]| {
            let head = [0x0c, 0, 2, 0, rate[0], rate[1], rate[2], rate[3], 0, 0, 0, 0];
            let numbers = values.iter().flat_map(|&(kind, value)| number(kind, value));
            head.into_iter().chain(numbers).collect::<Vec<u8>>()
        };
        let (ten, twenty) = ([0xd0, 0x12, 0x13, 0], [0xa0, 0x25, 0x26, 0]);
        assert_eq!(
            say("cake bandwidth 20mbit diffserv4 docsis nat", 0),
            expected(twenty, &[(3, 1), (4, 0), (6, 18), (14, 64), (9, 0), (11, 1)])
        );
        assert_eq!(
            say("cake bandwidth 10mbit besteffort flows raw mpu 64", 0),
            expected(ten, &[(3, 3), (4, 0), (5, 4), (6, 0), (12, 0), (14, 64), (9, 0)])
        );
        assert_eq!(
            say("cake bandwidth 10mbit ptm overhead 30 autorate-ingress", 0),
            expected(ten, &[(4, 2), (6, 30), (9, 1)])
        );
        // Beneath a line that counts a packet 14 bytes shorter, in either meaning of a length.
        assert_eq!(
            say("cake bandwidth 10mbit", 14),
            expected(ten, &[(4, 0), (6, 14), (12, 0), (9, 0)])
        );
        assert_eq!(
            say("cake bandwidth 10mbit overhead -4", 14),
            expected(ten, &[(4, 0), (6, 10), (9, 0)])
        );
    }

    #[test]
    fn diffserv_is_diffserv4() {
        let say = |text| told(text, Framing::NONE).unwrap();
        assert_eq!(say("cake diffserv"), say("cake diffserv4"));
        let tin = |text: &str| highest_tin(&options(text));
        assert_eq!((tin("cake diffserv"), tin("cake"), tin("cake precedence")), (4, 3, 8));
    }

    #[test]
    fn what_tc_tells_to_change_the_rate() {
        let mut message = Message::new(0, 0, About { index: 0, handle: 0, parent: 0 });
        put_rate(&mut message, Some(Rate::from_mbit(20)));
        let expected =
            [&[0x0c, 0, 2, 0, 0xa0, 0x25, 0x26, 0, 0, 0, 0, 0][..], &number(9, 0)].concat();
        assert_eq!(options_of(message), expected);
    }

    #[test]
    fn what_the_shaper_says_is_refused_in_the_words() {
        let error = told("cake bandwidth 10mbit", Framing::NONE).unwrap_err().to_string();
        assert!(error.starts_with("cake: `bandwidth` cannot be written"), "{error}");
    }
}
