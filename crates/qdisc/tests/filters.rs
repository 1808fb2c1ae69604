//! Filters: of which packets they are asked, and in which order.

use weir_core::{Dscp, Ecn, FlowKey, IpVersion, Packet, Protocol, Time};
use weir_qdisc::{Device, Ignore, Qdisc, QueueSpec};

const PRIO: &str = "qdisc add dev e root handle 1: prio";

fn read(spec: &str) -> Result<Box<dyn Qdisc>, String> {
    let built = QueueSpec::parse(spec).and_then(|it| it.build(&Device::default()));
    built.map_err(|error| error.to_string())
}

/// `prio` with three bands, and each of `filters` behind `filter add ... parent 1:`.
fn bands(filters: &[&str]) -> String {
    let add = |filter: &&str| format!("\nfilter add dev e parent 1: {filter}");
    PRIO.to_owned() + &filters.iter().map(add).collect::<String>()
}

/// What is said of `filters`, without the command that it is about.
fn refusal(filters: &[&str]) -> String {
    let error = read(&bands(filters)).err().expect("it is taken");
    error.split_once("`: ").unwrap().1.to_owned()
}

/// A UDP packet from port 1000 to `dport` with the TOS byte `tos`.
fn packet(dport: u16, tos: u8) -> Packet {
    packet_of(IpVersion::V4, dport, tos)
}

/// The same of that version.
fn packet_of(version: IpVersion, dport: u16, tos: u8) -> Packet {
    let addresses = match version {
        IpVersion::V4 => ["10.0.0.1", "10.0.1.9"],
        IpVersion::V6 => ["fd00::1", "fd00:1::9"],
    };
    let [src, dst] = addresses.map(|address| address.parse().unwrap());
    let key = FlowKey { src, dst, sport: 1_000, dport, protocol: Protocol::UDP };
    let (dscp, ecn) = (Dscp::from_tos(tos), Ecn::from_tos(tos));
    Packet { label: key.label(1), len: 1_000, dscp, ecn, ..Packet::BLANK }
}

/// The band of `prio` into which `filters` put `packet`, from 1.
fn band(filters: &[&str], packet: Packet) -> usize {
    let mut queue = read(&bands(filters)).unwrap();
    queue.enqueue(&packet, Time::ZERO, &mut Ignore);
    let mut waiting = Vec::new();
    queue.classes(&mut |class| waiting.push(class.backlog.packets));
    1 + waiting.iter().position(|&packets| packets == 1).unwrap()
}

const VOICE: &str = "u32 match ip dsfield 0xb8 0xfc flowid 1:1";
const ALL: &str = "u32 match ip dsfield 0 0 flowid 1:3";

/// What `tc filter show` of Linux 6.18 prints of the same commands: priorities 49152, 49151 and so on.
#[test]
fn filters_without_a_priority_are_asked_last_one_first() {
    let voice = packet(5, 0xb8);
    assert_eq!(band(&[VOICE, ALL], voice), 3);
    assert_eq!(band(&[ALL, VOICE], voice), 1);
    let zero = |filter| format!("prio 0 {filter}");
    assert_eq!(band(&[&zero(VOICE), &zero(ALL)], voice), 3, "0 is none");
}

#[test]
fn a_priority_that_is_not_written_is_below_the_least_from_32768_on() {
    let voice = packet(5, 0xb8);
    let with = |priority: u32, filter: &str| format!("prio {priority} {filter}");
    for (priority, band_of_voice) in [
        (1, 1),
        (32_767, 1),
        // The other then has 32768 and 49999 and 65534.
        (32_769, 3),
        (50_000, 3),
        (65_535, 3),
    ] {
        assert_eq!(band(&[&with(priority, VOICE), ALL], voice), band_of_voice, "{priority}");
    }
    // 49152 came first, and so the written one is asked before it, or after it.
    assert_eq!(band(&[ALL, &with(49_151, VOICE)], voice), 1);
    assert_eq!(band(&[ALL, &with(49_153, VOICE)], voice), 3);
    assert_eq!(
        refusal(&[&with(32_768, VOICE), ALL]),
        "a filter without `prio` gets the least priority from 32768 on, less one, and 32768 is taken: write \
         `prio`"
    );
    assert_eq!(
        refusal(&["prio 65536 matchall flowid 1:1"]),
        "`prio 65536`: write a number from 0 to 65535"
    );
}

#[test]
fn the_order_is_the_same_on_the_way_out_and_at_ingress() {
    let mut out = read(&format!(
        "{PRIO}\nqdisc add dev e clsact
         filter add dev e egress u32 match ip dport 5 0xffff action skbedit priority 1:1
         filter add dev e egress matchall action skbedit priority 1:3"
    ))
    .unwrap();
    out.enqueue(&packet(5, 0), Time::ZERO, &mut Ignore);
    let mut waiting = Vec::new();
    out.classes(&mut |class| waiting.push(class.backlog.packets));
    assert_eq!(waiting, [0, 0, 1]);

    let policed = |filters: [&str; 2]| {
        let add = |filter| format!("\nfilter add dev e parent ffff: {filter}");
        let text = format!("qdisc add dev e handle ffff: ingress{}", filters.map(add).concat());
        let mut queue = read(&text).unwrap();
        queue.enqueue(&packet(5, 0), Time::ZERO, &mut Ignore);
        queue.backlog().packets
    };
    let drops = "matchall action police rate 1mbit burst 10 conform-exceed drop";
    let passes = "matchall action police rate 1gbit burst 100k conform-exceed drop/ok";
    assert_eq!(policed([drops, passes]), 1);
    assert_eq!(policed([passes, drops]), 0);
}

/// Whether `filter` takes a packet of voice to port 5 over IPv4 and over IPv6.
fn takes(filter: &str) -> (bool, bool) {
    let of = |version| band(&[&format!("{filter} flowid 1:3")], packet_of(version, 5, 0xb8)) == 3;
    (of(IpVersion::V4), of(IpVersion::V6))
}

#[test]
fn a_filter_of_one_protocol_is_asked_about_its_packets_only() {
    for (filter, expected) in [
        ("protocol ip u32 match ip dsfield 0xb8 0xfc", (true, false)),
        ("protocol ip u32 match ip dport 5 0xffff", (true, false)),
        ("protocol ip u32 match ip dsfield 0 0", (true, false)),
        ("protocol ip flower ip_tos b8/fc", (true, false)),
        ("protocol ip matchall", (true, false)),
        ("protocol IPv4 matchall", (true, false)),
        ("protocol ipv6 matchall", (false, true)),
        ("protocol ipv6 u32 match ip6 priority 0xb8 0xfc", (false, true)),
        ("protocol ipv6 u32 match ip6 priority 0x20 0xfc", (false, false)),
        ("protocol ipv6 u32 match ip6 protocol 17 ff match ip6 dport 5 ffff", (false, true)),
        ("protocol ipv6 flower ip_proto udp dst_port 5 ip_tos b8/fc", (false, true)),
        ("protocol all matchall", (true, true)),
        ("matchall", (true, true)),
        ("u32 match ip dsfield 0 0", (true, true)),
        ("u32 match ip dport 0 0 match mark 0 0", (true, true)),
        // A header of IPv4 is none of IPv6.
        ("u32 match ip dport 5 0xffff", (true, false)),
        ("protocol all u32 match ip6 dport 5 0xffff", (false, true)),
    ] {
        assert_eq!(takes(filter), expected, "{filter}");
    }
}

#[test]
fn numbers_are_read_as_tc_reads_them() {
    // Masks of `u32` and protocols of `flower` are hexadecimal, written so or not.
    assert!(takes("u32 match ip dport 0x15 f").0);
    assert!(!takes("u32 match ip dport 0x15 1f").0);
    assert!(takes("protocol ip flower ip_proto 11").0);
    assert!(!takes("protocol ip flower ip_proto 17").0);
}

#[test]
fn what_cannot_be_asked_of_a_protocol_is_refused_in_a_sentence() {
    let addresses = "packets here carry a hash of an IPv6 address, of which no prefix is known: match ports, the \
                     protocol or the traffic class";
    for (filter, expected) in [
        ("protocol 802_3 matchall", "`protocol 802_3`: write ip, ipv6 or all".to_owned()),
        (
            "protocol ipv6 u32 match ip tos 0xb8 0xfc",
            "`match ip tos` in a filter of `protocol ipv6`, whose packets have no such header: write `match ip6`"
                .to_owned(),
        ),
        (
            "protocol ip u32 match ip6 priority 0xb8 0xfc",
            "`match ip6 priority` in a filter of `protocol ip`, whose packets have no such header: write `match \
             ip`"
                .to_owned(),
        ),
        (
            "protocol ipv6 u32 match ip6 flowlabel 1 ff",
            "`match ip6 flowlabel`: known are sport, dport, priority, protocol".to_owned(),
        ),
        ("u32 match ip6 dst fd00::/8", format!("`match ip6 dst fd00::/8`: {addresses}")),
        ("protocol ipv6 flower src_ip fd00::1", format!("`flower src_ip fd00::1`: {addresses}")),
        (
            "protocol ipv6 flower ip_proto icmp",
            "`flower ip_proto icmp`: write tcp, udp, sctp, icmpv6 or a hexadecimal number up to ff".to_owned(),
        ),
        (
            "flower ip_proto udp",
            "`flower ip_proto udp`: write `protocol ip` or `protocol ipv6` before `flower`".to_owned(),
        ),
        (
            "u32 match ip tos 0x1b8 0xfc",
            "`match ip tos 0x1b8 0xfc`: write a number and a hexadecimal mask, both up to 0xff".to_owned(),
        ),
        ("u32 match ip dport 5", "`match ip dport 5`: the mask is missing".to_owned()),
    ] {
        assert_eq!(refusal(&[filter]), expected, "{filter}");
    }
}

#[test]
fn filters_of_one_priority_are_of_one_kind_and_protocol() {
    let kind = "filters of one priority have one kind, and those with `prio 5` have `matchall` and not `u32`: write \
                another `prio`";
    let all = "prio 5 matchall flowid 1:1";
    let ip = "prio 5 protocol ip u32 match ip dport 5 ffff flowid 1:1";
    assert_eq!(refusal(&[all, ip]), kind);
    let protocol = "filters of one priority have one protocol, and those with `prio 5` have `ip` and not `all`: write \
                    another `prio`";
    assert_eq!(refusal(&[ip, "prio 5 u32 match ip dport 6 ffff flowid 1:1"]), protocol);
    // Of one number by accident: 49152 is that of a filter without.
    assert!(
        refusal(&["matchall flowid 1:1", &ip.replace("prio 5", "prio 49152")])
            .contains("have one kind")
    );
    assert!(
        refusal(&[all, all])
            .starts_with("a `matchall` filter with `prio 5` that asks the same is there")
    );
    let mark = "prio 5 handle 1 fw flowid 1:1";
    assert!(refusal(&[mark, mark]).starts_with("a `fw` filter"));
    assert_eq!(
        band(&[ip, "prio 5 protocol ip u32 match ip dport 5 ffff flowid 1:3"], packet(5, 0)),
        1
    );
    assert_eq!(band(&["prio 6 matchall flowid 1:3", ip], packet(5, 0)), 1);
}

#[test]
fn flower_asks_by_masks_in_the_order_in_which_they_came() {
    let flower = |asks: &str, band: u8| {
        format!("prio 5 protocol ip flower ip_proto udp {asks} flowid 1:{band}")
    };
    let filters = [flower("dst_port 7", 3), flower("ip_tos b8/fc", 1), flower("dst_port 5", 3)];
    let filters = filters.each_ref().map(String::as_str);
    // The ports have one mask, which came first; each by itself says another band.
    assert_eq!(band(&filters, packet(5, 0xb8)), 3);
    assert_eq!(band(&filters[1..2], packet(5, 0xb8)), 1);
    assert_eq!(band(&filters[1..], packet(5, 0xb8)), 1);
    assert!(refusal(&[filters[0], filters[0]]).starts_with("a `flower` filter with `prio 5`"));
}
