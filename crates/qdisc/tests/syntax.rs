//! `tc` syntax: what is read, and the one sentence about what is not.

use weir_core::{Rate, Time};
use weir_qdisc::{DISCIPLINES, Device, Ignore, QueueSpec};

fn error(text: &str) -> String {
    let device = Device::default();
    match QueueSpec::parse(text).and_then(|spec| spec.build(&device)) {
        Ok(_) => panic!("`{text}` was taken"),
        Err(error) => error.to_string(),
    }
}

fn builds(text: &str) {
    let device = Device { line_rate: Some(Rate::from_mbit(20)), ..Device::default() };
    let built = QueueSpec::parse(text).and_then(|spec| spec.build(&device));
    if let Err(error) = built {
        panic!("`{text}`: {error}");
    }
}

#[test]
fn short_forms_nest() {
    builds("fq_codel");
    builds("fq_codel limit 1000 target 5ms ecn");
    builds("htb rate 95% fq_codel");
    builds("htb rate 10mbit ceil 12mbit burst 15k prio 1 quantum 1514 codel noecn");
    builds("tbf rate 8mbit burst 5kb latency 50ms fq_codel flows 32");
    builds("htb rate 9mbit tbf rate 8mbit burst 2000 limit 30000");
    builds("htb default 1 rate 95% fq_codel");
    builds("hfsc default 0x1 sc rate 9mbit ul rate 9mbit");
    builds("prio bands 3 fq_codel");
    builds("prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1 pie ecn");
    builds("ets strict 1 quanta 3000 1514 fq_codel flows 32");
    builds("drr quantum 3000 codel");
    builds("qfq weight 5 maxpkt 2048 fq_pie");
    builds("htb rate 95% skbprio limit 32");
    builds("htb rate 95% dualpi2 max_rtt 60ms classic_protection 20");
}

#[test]
fn full_forms_build_trees() {
    builds(
        "tc qdisc add dev eth0 root handle 1: htb default 10; class add dev eth0 parent 1: classid \
         1:1 htb rate 10mbit; class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit; \
         qdisc add dev eth0 parent 1:10 handle 10: fq_codel; filter add dev eth0 parent 1: protocol ip \
         prio 1 u32 match ip tos 0xb8 0xfc match ip src 10.0.0.0/8 flowid 1:10",
    );
}

#[test]
fn changes_count_behind_what_was_added() {
    let limit_of = |commands: &str| {
        let mut queue = QueueSpec::parse(commands).unwrap().build(&Device::default()).unwrap();
        for _ in 0..50 {
            queue.enqueue(&packet(), Time::ZERO, &mut Ignore);
        }
        queue.backlog().packets
    };
    let add = "qdisc add dev e root handle 1: pfifo limit 20";
    assert_eq!(limit_of(add), 20);
    assert_eq!(limit_of(&format!("{add}\nqdisc change dev e root pfifo limit 30")), 30);
    let ingress = format!("{add}\nqdisc add dev e ingress");
    assert_eq!(limit_of(&format!("{ingress}\nqdisc change dev e root pfifo limit 30")), 30);
    assert_eq!(limit_of(&format!("{add}\nqdisc change dev e handle 1: pfifo limit 40")), 40);
}

/// As `tc_modify_qdisc` has it: `add` wants a free place, `replace` changes a discipline of its own kind
/// and takes the place of another.
#[test]
fn a_place_holds_one_discipline() {
    let there = "is there already: write one of the two, or `qdisc replace`";
    let refused = |commands: &str, second: &str, what: &str| {
        assert_eq!(error(&format!("{commands}\n{second}")), format!("`{second}`: {what}"));
    };
    let pfifo = "qdisc add dev e root handle 1: pfifo limit 5";
    refused(pfifo, "qdisc add dev e root pfifo limit 50", &format!("a `pfifo` {there}"));
    refused(pfifo, "qdisc add dev e root fq_codel", &format!("a `pfifo` {there}"));
    refused(pfifo, "qdisc add dev e root handle 2: codel", &format!("a `pfifo` {there}"));
    let ingress = "qdisc add dev e handle ffff: ingress\nqdisc add dev e root codel";
    refused(ingress, "qdisc add dev e root codel", &format!("a `codel` {there}"));
    refused(ingress, "qdisc add dev e ingress", "`ingress` is there already");
    let clsact = "qdisc add dev e root codel\nqdisc add dev e clsact";
    refused(clsact, "qdisc add dev e clsact", "`clsact` is there already");
    let tbf = "qdisc add dev e root handle 1: tbf rate 8mbit burst 5kb latency 50ms\n\
               qdisc add dev e parent 1:1 codel";
    refused(tbf, "qdisc add dev e parent 1: pie", &format!("a `codel` {there}"));
    let prio = "qdisc add dev e root handle 1: prio\nqdisc add dev e parent 1:2 handle 10: codel";
    refused(prio, "qdisc add dev e parent 1:2 codel", &format!("a `codel` {there}"));
    refused(
        prio,
        "qdisc add dev e parent 1:3 handle 10: codel",
        "the handle `10:` is given away already",
    );
    let htb =
        "qdisc add dev e root handle 1: htb\nclass add dev e parent 1: classid 1:1 htb rate 1mbit";
    refused(
        htb,
        "class add dev e parent 1: classid 1:1 htb rate 2mbit",
        "class `1:1` is there already",
    );
    let htb_stays =
        "a `htb` that is there cannot be changed: write all its words where it is added";
    refused(htb, "qdisc replace dev e root handle 1: htb default 1", htb_stays);
    refused(htb, "qdisc change dev e root htb default 1", htb_stays);
    let sfq_stays =
        "a `sfq` that is there cannot be changed: write all its words where it is added";
    for command in ["replace dev e root", "change dev e handle 1:"] {
        refused(
            "qdisc add dev e root handle 1: sfq limit 100",
            &format!("qdisc {command} sfq limit 50"),
            sfq_stays,
        );
    }
    refused(
        pfifo,
        "qdisc replace dev e root handle 1: codel",
        "a `pfifo` cannot be changed into a `codel`",
    );
}

/// `qdisc replace` keeps what it does not name where the kind is the same, and nothing where it is
/// another.
#[test]
fn replacing_changes_a_discipline_of_its_kind() {
    let parse = |commands: &str| QueueSpec::parse(commands).unwrap();
    let add = "qdisc add dev e root handle 1: fq_codel limit 20 noecn";
    let words = |spec: &QueueSpec| spec.all_words().cloned().collect::<Vec<_>>().join(" ");
    let same = parse(&format!("{add}\nqdisc replace dev e root fq_codel target 3ms"));
    assert_eq!(words(&same), "limit 20 noecn target 3ms");
    let handle = parse(&format!("{add}\nqdisc replace dev e root handle 2: fq_codel target 3ms"));
    assert_eq!(words(&handle), "target 3ms");
    let other = parse(&format!("{add}\nqdisc replace dev e root codel target 3ms"));
    assert_eq!((other.discipline.name, words(&other)), ("codel", "target 3ms".to_owned()));
    let first = parse("qdisc replace dev e root codel target 3ms");
    assert_eq!((first.discipline.name, words(&first)), ("codel", "target 3ms".to_owned()));
}

#[test]
fn what_tc_takes_in_another_spelling_is_read() {
    // The example of tc-drr(8): a handle without a colon; so does a class' number stand for itself.
    builds("qdisc add dev e handle 1 root drr; class add dev e parent 1: classid 1:1 drr");
    builds(
        "qdisc add dev e root handle 1f htb; class add dev e parent 1f: classid 10 htb rate 1mbit",
    );
    // The example of tc-netem(8), whose bytes are a size.
    builds("netem delay 800us slot 200us 10ms packets 32 bytes 64k");
    // `burst bytes/cell`, as in tc-tbf(8), tc-htb(8) and tc-police(8).
    builds("tbf rate 1mbit burst 10kb/8 latency 50ms peakrate 2mbit mtu 2000/16");
    builds("htb rate 1mbit burst 15k/8 cburst 0/8");
    builds("ingress police rate 1mbit burst 10k/8 mtu 2kb/8");
}

#[test]
fn errors_are_one_sentence_with_what_is_allowed() {
    let cases = [
        ("", "an empty queue spec: name a discipline, such as `fq_codel`"),
        (
            "codel targt 5ms",
            "codel: `targt` is neither a parameter nor a queue discipline: did you mean `target`?",
        ),
        (
            "codel bytes 5",
            "codel: `bytes` is neither a parameter nor a queue discipline (known parameters: limit, \
             target, interval, ce_threshold, ecn)",
        ),
        (
            "qdisc add dev e root codel intervall 5ms",
            "codel: unknown parameter `intervall`: did you mean `interval`?",
        ),
        (
            "tbf rate 1mbit burst 1 limit 30000",
            "tbf: `burst 1`: a full packet never passes, which counts 1514 bytes here with the \
             Ethernet header: write 1514 bytes or more",
        ),
        (
            "tbf rate 1mbit burst 1513 latency 50ms fq_codel",
            "tbf: `burst 1513`: a full packet never passes, which counts 1514 bytes here with the \
             Ethernet header: write 1514 bytes or more",
        ),
        (
            "tbf rate 1mbit burst 2000 limit 100",
            "tbf: `limit 100`: a full packet never passes, which counts 1514 bytes here with the \
             Ethernet header: write 1514 bytes or more",
        ),
        (
            "tbf rate 1mbit burst 2000 limit 9000 peakrate 2mbit mtu 1500",
            "tbf: `mtu 1500`: a full packet never passes, which counts 1514 bytes here with the \
             Ethernet header: write 1514 bytes or more",
        ),
        (
            "stab linklayer atm tbf rate 1mbit burst 1600 limit 30000",
            "tbf: `burst 1600`: a full packet never passes, which counts 1696 bytes here by the size \
             table: write 1696 bytes or more",
        ),
        (
            "qdisc del dev e root\nqdisc add dev e root pfifo",
            "`qdisc del dev e root`: a spec begins on a port without disciplines, where nothing is \
             deleted: leave it out",
        ),
        (
            "qdisc add dev eth0 root handle 1: htb\nclass add dev eth1 parent 1: classid 1:1 htb rate 1mbit",
            "`class add dev eth1 parent 1: classid 1:1 htb rate 1mbit`: `dev eth1` after `dev eth0`: a \
             spec is for one device",
        ),
        ("sudo ip link", "`sudo ip link`: behind `sudo` stands `tc`"),
        ("codel \u{1b}[2J", "a spec with the control character U+001B: write printable characters"),
        ("codel target", "codel: `target` needs a value behind it"),
        (
            "codel target fast",
            "codel: `target fast`: write a number that is not negative with ns, us, ms or s",
        ),
        (
            "codel target -5ms",
            "codel: `target -5ms`: write a number that is not negative with ns, us, ms or s",
        ),
        ("pfifo limit 0", "pfifo: `limit 0`: write a number from 1 to 4294967295"),
        (
            "pfifo_head_drop limit 0",
            "pfifo_head_drop: `limit 0`: write a number from 1 to 4294967295",
        ),
        ("skbprio limit 0", "skbprio: `limit 0`: write a number from 1 to 4294967295"),
        ("bfifo limit 0", "bfifo: `limit 0`: write a size of at least 1 byte"),
        ("fq_codel memory_limit 0", "fq_codel: `memory_limit 0`: write a size of at least 1 byte"),
        ("rio limit 0", "rio: `limit 0`: write a size of at least 1 byte"),
        ("fred limit 0", "fred: `limit 0`: write a size of at least 1 byte"),
        ("frio limit 0kb", "frio: `limit 0kb`: write a size of at least 1 byte"),
        ("fred min 0", "fred: `min 0`: write a size of at least 1 byte"),
        ("ingress police rate 1mbit burst 0", "police: `burst 0`: write a size of at least 1 byte"),
        (
            "hfsc rt m1 1mbit d 10ms m2 0 ls m2 1mbit",
            "hfsc class: `rt m1 1mbit d 10ms m2 0`: `m2` must be above 0: the kernel's times wrap around where \
             a curve is flat at last",
        ),
        (
            "hfsc ls m2 1mbit ul m1 1mbit m2 0bit",
            "hfsc class: `ul m1 1mbit m2 0bit`: `m2` must be above 0: the kernel's times wrap around where a \
             curve is flat at last",
        ),
        ("fq_codel flows 70000", "fq_codel: `flows 70000`: write a number from 1 to 65536"),
        ("codel pfifo", "codel: nothing can sit beneath it"),
        ("htb fq_codel", "htb class: `rate` is required (rate that the class is guaranteed)"),
        (
            "htb rate 95%",
            "htb class: `rate 95%`: this line has no fixed rate to take a share of; write a rate",
        ),
        ("htb rate 0mbit", "htb class: `rate 0mbit`: write a rate of at least 8bit"),
        ("tbf rate 1mbit burst 2000", "tbf: one of `limit` and `latency` is required"),
        ("tbf rate 1mbit burst 2000 limit 0", "tbf: one of `limit` and `latency` is required"),
        (
            "tbf rate 1mbit burst 2000 limit 3000 latency 5ms",
            "tbf: `limit` and `latency` say the same thing; write one of them",
        ),
        (
            "tbf rate 5mbit burst 2000 limit 3000 peakrate 4mbit mtu 1600",
            "tbf: `peakrate 4Mbit`: it must be above the rate 5Mbit, by 8bit at least",
        ),
        (
            // In bytes the same, by which Linux counts.
            "tbf rate 1mbit burst 2000 limit 3000 peakrate 1000007bit mtu 1600",
            "tbf: `peakrate 1000007bit`: it must be above the rate 1Mbit, by 8bit at least",
        ),
        ("cake memlimit 4294967296b", "cake: `memlimit 4294967296b`: write a size below 4gb"),
        ("fq_codel memory_limit 4gb", "fq_codel: `memory_limit 4gb`: write a size below 4gb"),
        ("bfifo limit 5gb", "bfifo: `limit 5gb`: write a size below 4gb"),
        ("fq buckets 1", "fq: `buckets 1`: write a number from 2 to 262144"),
        ("fq buckets 262145", "fq: `buckets 262145`: write a number from 2 to 262144"),
        ("sfq perturb 2147484", "sfq: `perturb 2147484`: write a number from 0 to 2147483"),
        (
            "netem reorder 25%",
            "netem: `reorder` sends packets without the delay: write `delay TIME` too",
        ),
        (
            "netem delay 1ms gap 5",
            "netem: `gap 5`: it needs `reorder PERCENT`, the share of packets at that distance that is \
             sent first",
        ),
        ("netem loss 105%", "netem: `loss 105%`: write percentages from 0% to 100%"),
        ("netem loss state", "netem: `loss state`: a probability is missing"),
        ("netem ecn", "netem: `ecn` marks where packets would be lost: write `loss` too"),
        (
            "netem delay 1ms distribution normal",
            "netem: `distribution` shapes jitter: write `delay TIME JITTER` too",
        ),
        ("fq weights 1 2 3", "fq: `weights 1 2 3`: write 3 numbers from 16384 to 2147483647"),
        ("fq priomap 1 2 3", "fq: `priomap 1 2 3`: write 16 numbers from 0 to 2"),
        ("ingress police rate 1mbit", "police: `rate` needs `burst`"),
        (
            "qdisc add dev e root handle 1: htb\nfilter add dev e parent 1: matchall action police rate \
             1mbit burst 5k",
            "`filter add dev e parent 1: matchall action police rate 1mbit burst 5k`: filters of \
             `ingress` name a policer, filters of others a class",
        ),
        (
            "htb default 30 rate 1mbit fq_codel",
            "htb: `default 30`: the short form has one class, 1, which takes everything: leave \
             `default` out, or write every class with `class add`",
        ),
        (
            "prio bands 2 priomap 1 htb rate 1mbit default 0 fq_codel",
            "htb: `default 0`: the short form has one class, 1, which takes everything: leave \
             `default` out, or write every class with `class add`",
        ),
        (
            "hfsc default 0x30 sc rate 3mbit ul rate 3mbit",
            "hfsc: `default 0x30`: the short form has one class, 1, which takes everything: leave \
             `default` out, or write every class with `class add`",
        ),
        ("htb default x rate 1mbit", "htb: `default x`: write a hexadecimal number from 0 to ffff"),
        (
            "htb direct_qlen 5 rate 1mbit",
            "htb: `direct_qlen 5`: the short form has one class, 1, which takes everything: leave \
             `direct_qlen` out, or write every class with `class add`",
        ),
        (
            "qdisc add dev e root handle 1x: drr",
            "`qdisc add dev e root handle 1x: drr`: `1x:` is not a handle: write a hexadecimal number up \
             to ffff and a colon, such as `1:`",
        ),
        (
            "qdisc add dev e root handle 1: htb; class add dev e parent 1 classid 1:1 htb rate 1mbit",
            "`class add dev e parent 1 classid 1:1 htb rate 1mbit`: `parent 1` names no discipline: write \
             `parent 1:`",
        ),
        (
            "qdisc add dev e root handle 1: htb; class add dev e parent 1: classid 1.1 htb rate 1mbit",
            "`class add dev e parent 1: classid 1.1 htb rate 1mbit`: `1.1` is not a class: write \
             `major:minor` in hexadecimal",
        ),
        (
            "netem slot 1ms packets 3k",
            "netem: `slot packets 3k`: write a whole number up to 2147483647",
        ),
        (
            "netem slot 1ms bytes 64x",
            "netem: `slot bytes 64x`: write a number with b, kb, mb or gb (kbit, mbit, gbit for bits)",
        ),
        ("netem slot 1ms bytes 3gb", "netem: `slot bytes 3gb`: write a size below 2gb"),
        (
            "tbf rate 1mbit burst 10kb/7 latency 50ms",
            "tbf: `burst 10kb/7`: the cell behind the `/` is a power of two",
        ),
        ("hfsc fq_codel", "hfsc class `1:1`: one of `rt`, `ls` and `sc` is required"),
        (
            "hfsc rt m2 1mbit ul m2 2mbit",
            "hfsc class `1:1`: `ul` limits link sharing: write `ls` or `sc` too",
        ),
        (
            "hfsc sc m1 1mbit d 5ms",
            "hfsc class: `sc m1 1mbit d 5ms`: write `[m1 RATE] [d TIME] m2 RATE` or `[[umax SIZE] \
             dmax TIME] rate RATE`",
        ),
        ("hfsc ls m2 0bit", "hfsc class: `ls m2 0bit`: one of the two slopes must be above 0"),
        ("prio bands 2", "prio: `priomap 2`: write up to 16 numbers from 0 to 1"),
        ("prio bands 17", "prio: `bands 17`: write a number from 2 to 16"),
        ("prio priomap", "prio: `priomap` needs a value behind it"),
        ("ets", "ets: one of `bands`, `strict` and `quanta` is required"),
        (
            "ets bands 2 strict 2 quanta 1500",
            "ets: `strict 2` and 1 quanta make 3 bands; write as many `bands` at least, and 16 at most",
        ),
        (
            "qdisc add dev e root handle 1: prio\nqdisc add dev e parent 1:4 pfifo",
            "prio: there is no band `1:4`; there are 1:1 to 1:3",
        ),
        (
            "qdisc add dev e root handle 1: prio\nclass add dev e parent 1: classid 1:1 prio",
            "`class add dev e parent 1: classid 1:1 prio`: the classes of `prio` are its bands, which \
             are there by themselves",
        ),
        ("drr quantum 0", "drr class: `quantum 0`: write a number from 1 to 1048576"),
        ("qfq weight 1025", "qfq class: `weight 1025`: write a number from 1 to 1024"),
        ("pie alpha 33", "pie: `alpha 33`: write a number from 0 to 32"),
        ("fq_pie ecn_prob 101", "fq_pie: `ecn_prob 101`: write a number from 0 to 100"),
        (
            "qdisc add dev e root handle 1: htb\nclass add dev e parent 2: classid 2:1 htb rate 1mbit",
            "`class add dev e parent 2: classid 2:1 htb rate 1mbit`: there is no discipline `2:`",
        ),
        (
            "qdisc add dev e root handle 1: htb\nfilter add dev e parent 1: u32 match ip dport 5 0xff",
            "`filter add dev e parent 1: u32 match ip dport 5 0xff`: the filter's `flowid` is missing",
        ),
        (
            "qdisc add dev e root handle 1: htb\nqdisc change dev e handle 1: codel limit 5",
            "`qdisc change dev e handle 1: codel limit 5`: a `htb` cannot be changed into a `codel`",
        ),
        (
            "qdisc add dev e root handle 1: htb\nqdisc change dev e parent 1:1 codel limit 5",
            "`qdisc change dev e parent 1:1 codel limit 5`: say which discipline to change: write its \
             `handle`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "for `{text}`");
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_one() {
    let unknown = |name: &str| error(name).replace("unknown queue discipline ", "");
    assert_eq!(unknown("fq_kodel"), "`fq_kodel`: did you mean `fq_codel`?");
    assert_eq!(unknown("fqcodel"), "`fqcodel`: did you mean `fq_codel`?");
    let all: Vec<_> = DISCIPLINES.iter().map(|discipline| discipline.name).collect();
    let said = format!("`nothing_like_it`: there are {}", all.join(", "));
    assert_eq!(unknown("nothing_like_it"), said);
    // A discipline is near to itself, and so to no other.
    for discipline in DISCIPLINES {
        let slip = format!("{}_", discipline.name.to_uppercase());
        assert_eq!(unknown(&slip), format!("`{slip}`: did you mean `{}`?", discipline.name));
    }
}

#[test]
fn shells_comments_continued_lines_and_sudo_are_read() {
    builds(
        "# A shaper with one class.
         sudo tc qdisc add dev eth0 root handle 1: \\
             htb default 1   # everything
         /sbin/tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit; # half the line",
    );
    builds("fq_codel # as everywhere");
}

/// `tc` makes of `latency` the lesser of what both buckets let through meanwhile (`tc/q_tbf.c`): 6250 bytes and a
/// burst of 10240, or 7500 bytes and an `mtu` of 1540.
#[test]
fn the_limit_of_a_latency_is_the_lesser_of_both_buckets() {
    let waiting = |words: &str| {
        let spec = QueueSpec::parse(&format!("tbf rate 1mbit burst 10kb latency 50ms {words}"));
        let mut queue = spec.unwrap().build(&Device::default()).unwrap();
        for _ in 0..300 {
            queue.enqueue(&packet(), Time::ZERO, &mut Ignore);
        }
        u64::from(queue.backlog().packets) * u64::from(packet().len)
    };
    let len = u64::from(packet().len);
    assert_eq!(waiting(""), 16_490 / len * len);
    assert_eq!(waiting("peakrate 1200kbit mtu 1540"), 9_040 / len * len);
}

#[test]
fn a_set_up_that_is_too_large_is_refused_before_it_is_built() {
    let nested = |levels: usize| "htb rate 90% ".repeat(levels - 1) + "fq_codel";
    builds(&nested(16));
    let too_deep = "queue disciplines beneath one another on more than 16 levels: 16 are allowed";
    assert_eq!(error(&nested(17)), too_deep);
    assert_eq!(error(&nested(10_000)), too_deep);
    let mut full = "qdisc add dev e root handle 1: tbf rate 1mbit burst 2k limit 9k\n".to_owned();
    for level in 1..=5_000 {
        full += &format!(
            "qdisc add dev e parent {level:x}: handle {:x}: tbf rate 1mbit burst 2k limit 9k\n",
            level + 1
        );
    }
    assert!(error(&full[..200_000]).ends_with(too_deep));

    assert_eq!(error(&"a".repeat(300_000)), "a spec of 300000 bytes: write 262144 at most");
    let word = "a".repeat(200);
    let quoted = "a".repeat(157) + "...";
    assert_eq!(error(&word), format!("a word of 200 bytes, `{quoted}`: write 100 at most"));
    let many = "qdisc add dev e root handle 1: htb\n".to_owned() + &"x ".repeat(1_000);
    assert!(error(&many).len() < 400, "{}", error(&many));

    // Every band of every band: 16 + 16 * 16 and so on.
    assert_eq!(
        error("prio bands 16 prio bands 16 prio bands 16 pfifo"),
        "a spec of 4369 queue disciplines: 1024 are allowed"
    );
    assert_eq!(
        error("prio bands 16 fq_codel flows 65536 fq"),
        "fq_codel: nothing can sit beneath it"
    );
    assert_eq!(
        error("prio bands 16 prio bands 3 fq_codel flows 65536"),
        "a spec of 3145728 queues of flows: 1048576 are allowed"
    );
    let of_class = |id: u32| format!("class add dev e parent 1: classid 1:{id:x} drr\n");
    let classes: String = (1..=4_097).map(of_class).collect();
    assert_eq!(
        error(&format!("qdisc add dev e root handle 1: drr\n{classes}")),
        "a spec of 4097 classes: 4096 are allowed"
    );
}

#[test]
fn defaults_are_tcs() {
    // A packet limit of 1000 by txqueuelen: the 1001st packet is dropped.
    let device = Device::default();
    let mut queue = QueueSpec::parse("pfifo").unwrap().build(&device).unwrap();
    for _ in 0..1001 {
        queue.enqueue(&packet(), Time::ZERO, &mut Ignore);
    }
    assert_eq!(queue.backlog().packets, 1000);
    assert_eq!(queue.stats().total_dropped().packets, 1);
}

fn packet() -> weir_core::Packet {
    weir_core::Packet {
        handle: 0,
        enqueued_at: Time::ZERO,
        label: weir_core::FlowLabel::default(),
        len: 1514,
        flow_id: 0,
        dscp: weir_core::Dscp::BE,
        ecn: weir_core::Ecn::NotEct,
    }
}
