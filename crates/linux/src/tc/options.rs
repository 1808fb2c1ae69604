//! Options of a discipline as the kernel takes them: include/uapi/linux/pkt_sched.h, in the words that `tc`
//! uses.

use weir_core::Rate;
use weir_qdisc::{
    BfifoOptions, ChokeOptions, ClassSpec, CodelOptions, Device, FqCodelOptions, HtbClassParams,
    HtbOptions, Lengths, PfifoOptions, QueueSpec, RedOptions, SfqOptions, SizeTable,
    SkbPrioOptions, SpecError, TbfParams,
};

use super::rtnetlink::{TCA_OPTIONS, TCA_STAB, microseconds, short};
use super::{cake, early, flows};
use crate::message::Message;

/// Adds the options of `spec` to the message that makes it. Shapers count `added` more bytes a packet.
pub(crate) fn put(
    message: &mut Message,
    spec: &QueueSpec,
    device: &Device,
    added: u32,
) -> Result<(), SpecError> {
    match spec.discipline.name {
        "pfifo" | "pfifo_head_drop" => {
            let PfifoOptions { limit } = spec.read(device)?;
            message.put_u32(TCA_OPTIONS, limit);
        }
        "bfifo" => {
            let BfifoOptions { limit } = spec.read(device)?;
            message.put_u32(TCA_OPTIONS, short(limit));
        }
        "pfifo_fast" => {}
        "tbf" => put_tbf(message, &TbfParams::read(spec, device)?, added),
        "htb" => put_htb(message, spec, device)?,
        "codel" => put_codel(message, &spec.read(device)?),
        "fq_codel" => put_fq_codel(message, &spec.read(device)?),
        "pie" => flows::put_pie(message, &spec.read(device)?),
        "fq_pie" => flows::put_fq_pie(message, &spec.read(device)?),
        "fq" => flows::put_fq(message, &spec.read(device)?),
        "cake" => cake::put_as_written(message, &spec.read(device)?, added),
        "red" => {
            let options: RedOptions = spec.read(device)?;
            early::put_red(message, options.limit, &options.told()?);
        }
        "choke" => {
            let options: ChokeOptions = spec.read(device)?;
            early::put_choke(message, options.limit, &options.told()?);
        }
        "sfq" => {
            let options: SfqOptions = spec.read(device)?;
            early::put_sfq(message, &options, options.red_told(spec)?);
        }
        "sfb" => early::put_sfb(message, &spec.read(device)?),
        "skbprio" => {
            let SkbPrioOptions { limit } = spec.read(device)?;
            message.put_u32(TCA_OPTIONS, limit);
        }
        name => unreachable!("{name} was refused"),
    }
    Ok(())
}

/// Adds a size table to the message that makes a discipline (`struct tc_sizespec`, tc-stab(8)).
pub(super) fn put_size_table(message: &mut Message, table: &SizeTable) {
    let mut spec = vec![table.cell_log, table.size_log];
    spec.extend(table.cell_align.to_ne_bytes());
    spec.extend(table.overhead.to_ne_bytes());
    let numbers = [u32::from(table.link_layer), table.mpu, table.mtu, table.slots.len() as u32];
    spec.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    let slots: Vec<u8> = table.slots.iter().flat_map(|slot| slot.to_ne_bytes()).collect();
    message.nest(TCA_STAB, |stab| {
        stab.put(TCA_STAB_BASE, &spec);
        if !slots.is_empty() {
            stab.put(TCA_STAB_DATA, &slots);
        }
    });
}

/// Whether [`put`] knows a discipline.
pub(crate) fn knows(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// The first word of `spec` that [`put`] does not tell, if there is one.
pub(super) fn untold(spec: &QueueSpec) -> Option<&str> {
    let untold = UNTOLD.iter().find(|(name, _)| *name == spec.discipline.name)?.1;
    spec.all_words().map(String::as_str).find(|word| untold.contains(word))
}

/// Adds the options of a `tbf` to the message that makes it.
pub(super) fn put_tbf(message: &mut Message, params: &TbfParams, added: u32) {
    let lengths = with(params.lengths, added);
    let peak = params.peak.map(|(rate, _)| rate);
    let mut parms = ratespec(params.rate, lengths).to_vec();
    parms.extend(peak.map_or([0; RATESPEC], |rate| ratespec(rate, lengths)));
    parms.extend(short(params.limit).to_ne_bytes());
    // The bursts in ticks, of which the kernel makes nothing: it has them in bytes.
    parms.extend([0; 8]);
    message.nest(TCA_OPTIONS, |options| {
        options.put(TCA_TBF_PARMS, &parms);
        options.put_u32(TCA_TBF_BURST, short(params.burst));
        if params.rate.as_bytes_per_sec() > u64::from(u32::MAX) {
            options.put_u64(TCA_TBF_RATE64, params.rate.as_bytes_per_sec());
        }
        if let Some((rate, mtu)) = params.peak {
            options.put_u32(TCA_TBF_PBURST, short(mtu));
            if rate.as_bytes_per_sec() > u64::from(u32::MAX) {
                options.put_u64(TCA_TBF_PRATE64, rate.as_bytes_per_sec());
            }
        }
    });
}

/// Adds the options of an `htb` whose packets go to the class of that minor number.
pub(crate) fn put_htb_default(message: &mut Message, class: u32) {
    put_htb_init(message, [HTB_R2Q, class], None);
}

fn put_htb(message: &mut Message, spec: &QueueSpec, device: &Device) -> Result<(), SpecError> {
    let HtbOptions { default, r2q, direct_qlen } = spec.read(device)?;
    put_htb_init(message, [r2q, default.unwrap_or(0).into()], Some(direct_qlen));
    Ok(())
}

fn put_htb_init(message: &mut Message, [r2q, default]: [u32; 2], direct: Option<u32>) {
    let glob = [HTB_VERSION, r2q, default, 0, 0].map(u32::to_ne_bytes).concat();
    message.nest(TCA_OPTIONS, |options| {
        options.put(TCA_HTB_INIT, &glob);
        if let Some(packets) = direct {
            options.put_u32(TCA_HTB_DIRECT_QLEN, packets);
        }
    });
}

/// Adds the options of a class of `htb`, whose discipline has that `r2q`, to the message that makes it.
pub(super) fn put_class(
    message: &mut Message,
    class: &ClassSpec,
    r2q: u32,
    device: &Device,
    added: u32,
) -> Result<(), SpecError> {
    put_htb_class(message, &HtbClassParams::read(class, r2q, device)?, added);
    Ok(())
}

/// Adds the options of a class of `htb` to the message that makes or changes it.
pub(crate) fn put_htb_class(message: &mut Message, params: &HtbClassParams, added: u32) {
    let lengths = with(params.lengths, added);
    let mut parms = ratespec(params.rate, lengths).to_vec();
    parms.extend(ratespec(params.ceil, lengths));
    let [buffer, cbuffer] = [params.buffer_ns, params.cbuffer_ns].map(|ns| (ns / TICK_NS) as u32);
    for number in [buffer, cbuffer, short(params.quantum), 0, u32::from(params.prio)] {
        parms.extend(number.to_ne_bytes());
    }
    message.nest(TCA_OPTIONS, |options| {
        for (attribute, rate) in [(TCA_HTB_RATE64, params.rate), (TCA_HTB_CEIL64, params.ceil)] {
            if rate.as_bytes_per_sec() > u64::from(u32::MAX) {
                options.put_u64(attribute, rate.as_bytes_per_sec());
            }
        }
        options.put(TCA_HTB_PARMS, &parms);
    });
}

fn put_codel(message: &mut Message, options: &CodelOptions) {
    let CodelOptions { limit, target, interval, ce_threshold, ecn } = *options;
    message.nest(TCA_OPTIONS, |attributes| {
        attributes.put_u32(TCA_CODEL_TARGET, microseconds(target));
        attributes.put_u32(TCA_CODEL_INTERVAL, microseconds(interval));
        attributes.put_u32(TCA_CODEL_ECN, ecn.into());
        attributes.put_u32(TCA_CODEL_LIMIT, limit);
        if let Some(threshold) = ce_threshold {
            attributes.put_u32(TCA_CODEL_CE_THRESHOLD, microseconds(threshold));
        }
    });
}

fn put_fq_codel(message: &mut Message, options: &FqCodelOptions) {
    let FqCodelOptions { limit, flows, target, interval, ce_threshold, .. } = *options;
    message.nest(TCA_OPTIONS, |attributes| {
        attributes.put_u32(TCA_FQ_CODEL_TARGET, microseconds(target));
        attributes.put_u32(TCA_FQ_CODEL_INTERVAL, microseconds(interval));
        attributes.put_u32(TCA_FQ_CODEL_ECN, options.ecn.into());
        attributes.put_u32(TCA_FQ_CODEL_LIMIT, limit);
        attributes.put_u32(TCA_FQ_CODEL_FLOWS, short(flows as u64));
        attributes.put_u32(TCA_FQ_CODEL_QUANTUM, options.quantum);
        attributes.put_u32(TCA_FQ_CODEL_DROP_BATCH_SIZE, options.drop_batch);
        if let Some(threshold) = ce_threshold {
            attributes.put_u32(TCA_FQ_CODEL_CE_THRESHOLD, microseconds(threshold));
        }
        attributes.put_u32(TCA_FQ_CODEL_MEMORY_LIMIT, short(options.memory_limit));
    });
}

const fn with(lengths: Lengths, added: u32) -> Lengths {
    Lengths { overhead: lengths.overhead + added, ..lengths }
}

/// `struct tc_ratespec`. With a link layer named the kernel computes times by itself and wants no table.
fn ratespec(rate: Rate, lengths: Lengths) -> [u8; RATESPEC] {
    let link_layer = if lengths.cells { LINKLAYER_ATM } else { LINKLAYER_ETHERNET };
    let mut spec = [0; RATESPEC];
    spec[1] = link_layer;
    spec[2..4].copy_from_slice(&(lengths.overhead.min(0xffff) as u16).to_ne_bytes());
    spec[6..8].copy_from_slice(&(lengths.mpu.min(0xffff) as u16).to_ne_bytes());
    spec[8..].copy_from_slice(&short(rate.as_bytes_per_sec()).to_ne_bytes());
    spec
}

const KNOWN: &[&str] = &[
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "pfifo_fast",
    "tbf",
    "htb",
    "codel",
    "fq_codel",
    "red",
    "choke",
    "sfb",
    "sfq",
    "fq",
    "pie",
    "fq_pie",
    "skbprio",
    "cake",
];
/// Words that no Linux has, or that a kernel before 6.8 would ignore.
const UNTOLD: &[(&str, &[&str])] =
    &[("red", &["gentle"]), ("fq", &["bands", "priomap", "weights"])];
/// A tick of the kernel's traffic control, of which `tc` counts 15.625 a microsecond.
const TICK_NS: i64 = 64;
/// Length of `struct tc_ratespec`.
const RATESPEC: usize = 12;
const LINKLAYER_ETHERNET: u8 = 1;
const LINKLAYER_ATM: u8 = 2;
const HTB_VERSION: u32 = 3;
/// `tc`'s own default.
const HTB_R2Q: u32 = 10;
const TCA_STAB_BASE: u16 = 1;
const TCA_STAB_DATA: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;
const TCA_HTB_PARMS: u16 = 1;
pub(crate) const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_DIRECT_QLEN: u16 = 5;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
// include/uapi/linux/pkt_sched.h
const TCA_CODEL_TARGET: u16 = 1;
const TCA_CODEL_LIMIT: u16 = 2;
const TCA_CODEL_INTERVAL: u16 = 3;
const TCA_CODEL_ECN: u16 = 4;
const TCA_CODEL_CE_THRESHOLD: u16 = 5;
const TCA_FQ_CODEL_TARGET: u16 = 1;
const TCA_FQ_CODEL_LIMIT: u16 = 2;
const TCA_FQ_CODEL_INTERVAL: u16 = 3;
const TCA_FQ_CODEL_ECN: u16 = 4;
const TCA_FQ_CODEL_FLOWS: u16 = 5;
const TCA_FQ_CODEL_QUANTUM: u16 = 6;
const TCA_FQ_CODEL_CE_THRESHOLD: u16 = 7;
const TCA_FQ_CODEL_DROP_BATCH_SIZE: u16 = 8;
const TCA_FQ_CODEL_MEMORY_LIMIT: u16 = 9;

/// The attributes within the options that the kernel is told of a spec, in order; `u16::MAX` for options that are
/// one structure.
#[cfg(test)]
pub(super) fn told(text: &str) -> Vec<(u16, Vec<u8>)> {
    use crate::message::{About, attributes, read};

    let mut message = Message::new(0, 0, About { index: 0, handle: 0, parent: 0 });
    put(&mut message, &QueueSpec::parse(text).unwrap(), &Device::default(), 0).unwrap();
    let bytes = message.finish();
    let (_, rest) = read(&bytes[16..]).unwrap();
    let (_, inner) = attributes(rest).next().unwrap();
    if text.starts_with("sfq") {
        return vec![(u16::MAX, inner.to_vec())];
    }
    let mut told: Vec<_> = attributes(inner).map(|(kind, value)| (kind, value.to_vec())).collect();
    told.sort();
    told
}

/// Those that are numbers.
#[cfg(test)]
pub(super) fn told_numbers(text: &str) -> Vec<(u16, u32)> {
    let number = |value: Vec<u8>| match value[..] {
        [byte] => u32::from(byte),
        _ => u32::from_ne_bytes(value.try_into().unwrap()),
    };
    told(text).into_iter().map(|(kind, value)| (kind, number(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{About, attributes, read};

    // What iproute2 6.1 sends, as strace shows it.
    #[test]
    fn what_tc_tells_of_codel_and_fq_codel() {
        assert_eq!(
            told_numbers(
                "fq_codel limit 40 flows 4 quantum 300 target 1ms interval 10ms noecn \
                 memory_limit 64Kb drop_batch 8 ce_threshold 2ms"
            ),
            [
                (1, 1_000),
                (2, 40),
                (3, 10_000),
                (4, 0),
                (5, 4),
                (6, 300),
                (7, 2_000),
                (8, 8),
                (9, 65_536)
            ]
        );
        assert_eq!(
            told_numbers("codel limit 50 target 2ms interval 20ms ecn ce_threshold 1ms"),
            [(1, 2_000), (2, 50), (3, 20_000), (4, 1), (5, 1_000)]
        );
    }

    /// Without the table of times and the logarithm of its cells, which a kernel that knows the link
    /// layer does not read, and without the bucket in ticks, which it has in bytes.
    #[test]
    fn what_tc_tells_of_tbf() {
        let told = told("tbf rate 10mbit burst 5000 limit 20000 overhead 4 linklayer atm");
        let mut parms = vec![0, LINKLAYER_ATM, 4, 0, 0, 0, 0, 0, 0xd0, 0x12, 0x13, 0];
        parms.extend([0; 12]);
        parms.extend([0x20, 0x4e, 0, 0]);
        parms.extend([0; 8]);
        assert_eq!(told, [(TCA_TBF_PARMS, parms), (TCA_TBF_BURST, vec![0x88, 0x13, 0, 0])]);
    }

    /// In the order of `struct tc_sizespec`, as strace shows what iproute2 6.1 sends for these words.
    #[test]
    fn what_tc_tells_of_a_size_table() {
        let told = |text: &str| {
            let mut message = Message::new(0, 0, About { index: 0, handle: 0, parent: 0 });
            let spec = QueueSpec::parse(text).unwrap();
            put_size_table(&mut message, &spec.size_table.unwrap());
            let bytes = message.finish();
            let (_, rest) = read(&bytes[16..]).unwrap();
            let (kind, inner) = attributes(rest).next().unwrap();
            assert_eq!(kind & 0x7fff, TCA_STAB);
            attributes(inner).map(|(of, value)| (of, value.to_vec())).collect::<Vec<_>>()
        };
        let spec = |head: [u8; 4], overhead: i32, rest: [u32; 4]| {
            let mut spec = head.to_vec();
            spec.extend(overhead.to_ne_bytes());
            spec.extend(rest.map(u32::to_ne_bytes).concat());
            spec
        };
        assert_eq!(
            told("stab overhead -4 pfifo"),
            [(TCA_STAB_BASE, spec([0; 4], -4, [0; 4]))],
            "no table where only the overhead counts"
        );
        let atm = told("stab mtu 70000 tsize 16 linklayer atm pfifo");
        assert_eq!(atm[0], (TCA_STAB_BASE, spec([13, 2, 0xff, 0xff], 0, [2, 0, 70_000, 16])));
        let slots: Vec<_> =
            atm[1].1.chunks(2).map(|two| u16::from_ne_bytes([two[0], two[1]])).collect();
        assert_eq!((atm[1].0, slots.len(), &slots[..3]), (2, 16, &[2_265, 4_531, 6_784][..]));
    }

    #[test]
    fn what_tc_tells_of_an_htb_class() {
        let spec = QueueSpec::parse("htb rate 19mbit").unwrap();
        let mut message = Message::new(0, 0, About { index: 0, handle: 0, parent: 0 });
        put_class(&mut message, &spec.classes[0], 10, &Device::default(), 0).unwrap();
        let bytes = message.finish();
        let (_, rest) = read(&bytes[16..]).unwrap();
        let (_, inner) = attributes(rest).next().unwrap();
        let (_, parms) = attributes(inner).next().unwrap();
        let rate = [0, LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0, 0x58, 0x3d, 0x24, 0];
        assert_eq!((&parms[..12], &parms[12..24]), (&rate[..], &rate[..]));
        assert_eq!(parms[24..32], [0x13, 0x29, 0, 0, 0x13, 0x29, 0, 0]);
        // The quantum, which tc leaves to the kernel: the same.
        assert_eq!(parms[32..36], 200_000u32.to_ne_bytes());
    }
}
