//! Options of the disciplines that drop early, or fairly, as the kernel takes them: `red`, `choke`, `sfq`, `sfb`.

use weir_qdisc::{RedTold, SfbOptions, SfqOptions};

use super::rtnetlink::{TCA_OPTIONS, short};
use crate::message::Message;

/// Adds the options of a `red` to the message that makes it, its flags beside the others, as Linux has it since 5.7.
///
/// But not those of an adaptive one: the kernel looks for that flag among the others alone, where `tc` no longer
/// writes it, and refuses flags in both places.
pub(super) fn put_red(message: &mut Message, limit: u32, told: &RedTold) {
    let flags = [u32::from(told.flags), ALL_FLAGS].map(u32::to_ne_bytes).concat();
    message.nest(TCA_OPTIONS, |options| {
        if told.flags & ADAPTIVE != 0 {
            return put_thresholds(options, limit, told);
        }
        put_thresholds(options, limit, &RedTold { flags: 0, ..*told });
        options.put(TCA_RED_FLAGS, &flags);
    });
}

/// Adds the options of a `choke` to the message that makes it.
pub(super) fn put_choke(message: &mut Message, limit: u32, told: &RedTold) {
    message.nest(TCA_OPTIONS, |options| put_thresholds(options, limit, told));
}

fn put_thresholds(options: &mut Message, limit: u32, told: &RedTold) {
    let RedTold { min, max, weight_log, probability_log, cell_log, flags, .. } = *told;
    // struct tc_red_qopt
    let mut parms = [limit, min, max].map(u32::to_ne_bytes).concat();
    parms.extend([weight_log, probability_log, cell_log, flags]);
    options.put(TCA_RED_PARMS, &parms);
    options.put(TCA_RED_STAB, &told.shifts);
    options.put_u32(TCA_RED_MAX_P, told.max_p);
}

/// Adds the options of an `sfq` to the message that makes it, with RED on each flow if it has some.
pub(super) fn put_sfq(message: &mut Message, options: &SfqOptions, red: Option<(u32, RedTold)>) {
    let limit = options.limit.map_or(0, short);
    // struct tc_sfq_qopt_v1
    let numbers = [
        options.quantum,
        short(options.perturb),
        limit,
        short(options.divisor),
        short(options.flows),
        short(options.depth),
        u32::from(options.headdrop),
        red.map_or(0, |(bytes, _)| bytes),
        red.map_or(0, |(_, told)| told.min),
        red.map_or(0, |(_, told)| told.max),
    ];
    let mut parms = numbers.map(u32::to_ne_bytes).concat();
    let logs =
        red.map(|(_, told)| [told.weight_log, told.probability_log, told.cell_log, told.flags]);
    parms.extend(logs.unwrap_or_default());
    parms.extend(red.map_or(0, |(_, told)| told.max_p).to_ne_bytes());
    parms.extend([0; SFQ_RED_STATS]);
    message.put(TCA_OPTIONS, &parms);
}

/// Adds the options of an `sfb` to the message that makes it.
pub(super) fn put_sfb(message: &mut Message, options: &SfbOptions) {
    let (max, target) = options.bin_sizes();
    let (increment, decrement) = options.steps();
    // struct tc_sfb_qopt; without a limit the kernel takes the device's.
    let numbers = [
        short(options.rehash),
        short(options.db),
        max,
        target,
        increment.into(),
        decrement.into(),
        options.limit.0.unwrap_or(0),
        short(options.penalty_rate),
        short(options.penalty_burst),
    ];
    let parms = numbers.map(u32::to_ne_bytes).concat();
    message.nest(TCA_OPTIONS, |attributes| attributes.put(TCA_SFB_PARMS, &parms));
}

// include/uapi/linux/pkt_sched.h
/// `TC_RED_ECN`, `TC_RED_HARDDROP`, `TC_RED_ADAPTATIVE` and `TC_RED_NODROP`.
const ALL_FLAGS: u32 = 0xf;
/// `TC_RED_ADAPTATIVE`
const ADAPTIVE: u8 = 4;
const TCA_RED_PARMS: u16 = 1;
const TCA_RED_STAB: u16 = 2;
const TCA_RED_MAX_P: u16 = 3;
const TCA_RED_FLAGS: u16 = 4;
const TCA_SFB_PARMS: u16 = 1;
/// Length of `struct tc_sfqred_stats`, which only the kernel fills in.
const SFQ_RED_STATS: usize = 24;

#[cfg(test)]
mod tests {
    use super::super::options::told;

    /// Of a text of hexadecimal digits.
    fn bytes(text: &str) -> Vec<u8> {
        let digit = |place| u8::from_str_radix(&text[place..place + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    // What iproute2 6.1 sends, as strace shows it.
    #[test]
    fn what_tc_tells_of_red_and_choke() {
        let red = |words: &str| told(&format!("red {words}"));
        let first =
            red("limit 40000 min 3000 max 9000 avpkt 1000 burst 8 probability 0.1 bandwidth 2mbit");
        assert_eq!(first[0], (1, bytes("409c0000b80b00002823000004101000")));
        assert_eq!(first[2..], [(3, bytes("99999919")), (4, bytes("000000000f000000"))]);
        let shifts = &first[1].1;
        let sum: u32 = shifts.iter().copied().map(u32::from).sum();
        assert_eq!((shifts.len(), &shifts[14..18], sum), (256, &[0, 1, 1, 1][..], 2097));
        let other = "limit 30000 min 1000 max 3000 avpkt 500 burst 3";
        let marking = red(&format!("{other} ecn harddrop nodrop"));
        assert_eq!(marking[0], (1, bytes("30750000e8030000b80b000002110b00")));
        assert_eq!(marking[2..], [(3, bytes("51b81e05")), (4, bytes("0b0000000f000000"))]);
        let certain = red(&format!("{other} probability 1"));
        assert_eq!(certain[0], (1, bytes("30750000e8030000b80b0000020b0b00")));
        assert_eq!(certain[2], (3, bytes("00000000")));
        let choke = told("choke limit 40 bandwidth 1mbit min 2 max 8 burst 4 probability 0.2 ecn");
        assert_eq!(choke[0], (1, bytes("280000000200000008000000030f1001")));
        assert_eq!(choke[2..], [(3, bytes("33333333"))]);
    }

    #[test]
    fn adaptive_stands_where_the_kernel_looks_for_it() {
        let adaptive = told("red limit 30000 avpkt 500 ecn harddrop adaptive");
        assert_eq!(adaptive.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(adaptive[0].1[15], 0b111);
    }

    #[test]
    fn what_tc_tells_of_sfq_and_sfb() {
        let words = "limit 12 depth 4 quantum 600 divisor 4 flows 3 perturb 1 headdrop";
        let mut expected = bytes("58020000010000000c00000004000000030000000400000001000000");
        expected.extend([0; 44]);
        assert_eq!(told(&format!("sfq {words}")), [(u16::MAX, expected)]);
        let red = "redflowlimit 30000 min 1500 max 4000 burst 3 ecn harddrop probability 0.3";
        let mut with_red = bytes(
            "58020000010000000c0000000400000003000000040000000100000030750000dc050000a00f0000",
        );
        with_red.extend(bytes("030e0003cccccc4c"));
        with_red.extend([0; 24]);
        assert_eq!(told(&format!("sfq {words} {red}")), [(u16::MAX, with_red)]);
        let sfb = "sfb rehash 1000 db 100 limit 30 max 25 target 20 increment 0.2 decrement 0.01 \
                   penalty_rate 5 penalty_burst 6";
        let numbers = "e8030000640000001900000014000000333300008f0200001e0000000500000006000000";
        assert_eq!(told(sfb), [(1, bytes(numbers))]);
        let usual = "c027090060ea000019000000140000002100000003000000000000000a00000014000000";
        assert_eq!(told("sfb"), [(1, bytes(usual))]);
    }
}
