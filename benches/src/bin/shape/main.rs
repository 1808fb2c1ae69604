//! Throughput, processor time and delay of the userspace shaper: `make bench-shape` (needs iperf3, iproute2 and
//! ethtool).
//!
//! Two network namespaces, a veth pair between them, one TCP connection of iperf3. Measured in turn within
//! the same minute: nothing, the shaper with everything let through, and the shaper at a rate that is never
//! reached, so that every packet goes through `cake`. Then rates that hold packets back, beside the kernel's own
//! `htb` at the same rate. Then pings over the idle pair, without and with it, and beside a connection that is held
//! at a rate, what two connections that are held have of it, and a connection that the near end forwards.
//!
//! Some parts alone: `... --bin shape -- [ROUNDS rounds] [MS ms] [BYTES bytes] [by CONTROL] [PART [MBPS ...]]`, of
//! `carried`, `rates`, `idle`, `beside`, `shares` and `forwarded`. Rates are held on a path without a delay and on one of 20 ms, or
//! of `MS` alone; the near end makes GSO packets of up to `BYTES` (`gso_max_size`), or of as many as it likes;
//! connections have the machine's congestion control, or the one that is named.

mod forwarded;
mod late;

use std::ffi::OsString;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use weir_benches::median;
use weir_core::Framing;
use weir_lab::{Kind, Program};
use weir_linux::Namespace;
use weir_rate_control::Control;
use weir_shape::{Backend, Command, Settings};

use forwarded::Home;
use late::Late;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shape: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn measure() -> Outcome<()> {
    let wanted = Wanted::of(std::env::args().skip(1))?;
    weir_linux::isolate()?;
    let far = Namespace::new()?;
    connect(&far)?;
    let server = Program::start(&words("iperf3 -s --logfile /dev/null"), &far, Kind::Background)?;
    std::thread::sleep(Duration::from_millis(300));
    echo(&far)?;
    let home = Home::new(server.id())?;
    let late = Late::new(&far, server.id(), &[(NEAR, "dev far".to_owned()), home.route()])?;
    let Wanted { rounds, control, .. } = wanted;
    let bench = Bench { rounds, control, server: server.id(), late };
    let asked = |part| wanted.part.as_deref().is_none_or(|it| it == part);
    let at =
        |usual: &[u64]| if wanted.mbps.is_empty() { usual.to_vec() } else { wanted.mbps.clone() };
    if let Some(bytes) = wanted.bytes {
        run(&format!("ip link set near gso_max_size {bytes}"))?;
    }
    if asked("carried") {
        bench.carried()?;
    }
    if asked("idle") {
        bench.pings()?;
    }
    for ms in wanted.ms.map_or(PATHS_MS.to_vec(), |it| vec![it]) {
        println!("on a path of {ms} ms");
        bench.late.set(Duration::from_millis(ms))?;
        if asked("rates") {
            bench.rates(&at(&HELD_MBPS))?;
        }
        if asked("beside") {
            bench.loaded_pings(&at(&LOADED_MBPS))?;
        }
        if asked("shares") {
            bench.shares(&at(&LOADED_MBPS))?;
        }
        if asked("forwarded") {
            bench.forwarded(&home, &at(&FORWARDED_MBPS))?;
        }
    }
    Ok(())
}

/// What is measured.
#[derive(Default)]
struct Wanted {
    rounds: usize,
    /// One path's round trip; all if there is none.
    ms: Option<u64>,
    /// The longest GSO packet of the near end.
    bytes: Option<u64>,
    /// The congestion control of connections.
    control: Option<String>,
    /// One part; all if there is none.
    part: Option<String>,
    /// Rates; the usual ones if there are none.
    mbps: Vec<u64>,
}

impl Wanted {
    fn of(mut words: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut wanted = Self { rounds: ROUNDS, ..Self::default() };
        while let Some(word) = words.next() {
            if let Ok(number) = word.parse::<u64>() {
                match words.next().as_deref() {
                    Some("rounds") if number > 0 => wanted.rounds = number as usize,
                    Some("ms") => wanted.ms = Some(number),
                    Some("bytes") => wanted.bytes = Some(number),
                    _ => return Err("after a number comes `rounds`, `ms` or `bytes`".into()),
                }
            } else if word == "by" {
                wanted.control = Some(words.next().ok_or("`by` what?")?);
            } else if PARTS.contains(&word.as_str()) {
                wanted.part = Some(word);
                break;
            } else {
                return Err(format!("`{word}` is none of {}", PARTS.join(", ")).into());
            }
        }
        for word in words {
            wanted.mbps.push(word.parse().map_err(|_| format!("`{word}` is no rate in Mbit/s"))?);
        }
        Ok(wanted)
    }
}

/// The pair of namespaces, with a server of iperf3 at the far end.
struct Bench {
    rounds: usize,
    control: Option<String>,
    /// The server's process.
    server: u32,
    late: Late,
}

impl Bench {
    fn carried(&self) -> Outcome<()> {
        let rounds = self.rounds;
        println!("one TCP connection over a veth pair, medians of {rounds} rounds of {SECONDS} s");
        println!("{:>24} {:>10} {:>8} {:>10} {:>8}", "", "Mbit/s", "ratio", "cpu share", "passed");
        let found =
            in_turn(rounds, &CASES, |case| self.transfer(self.iperf3(), case.start(), &[]))?;
        let mut plain = None;
        for (case, values) in CASES.iter().zip(&found) {
            let mbps = middle(values, |it| it.mbps);
            let ratio = mbps / *plain.get_or_insert(mbps);
            let (cpu, missed) = (middle(values, |it| it.cpu), middle(values, |it| it.missed));
            println!("{:>24} {mbps:>10.0} {ratio:>8.3} {cpu:>10.2} {missed:>8.0}", case.name());
        }
        Ok(())
    }

    /// What it costs to hold one connection at a rate: in the kernel's `htb`, and in this process.
    fn rates(&self, all: &[u64]) -> Outcome<()> {
        let rounds = self.rounds;
        println!("one TCP connection held at a rate, medians of {rounds} rounds of {SECONDS} s");
        println!(
            "the machine's processors are busy with it for so many seconds a second, and iperf3 and the"
        );
        println!(
            "shaper use so much of one, which is so many times what they do with htb; packets that"
        );
        println!("come to the shaper on the way out have so many bytes");
        print_heads();
        for &mbps in all {
            let cases = [Held::Bare, Held::Kernel, Held::Userspace, Held::Cake, Held::FqCodel];
            let found = in_turn(rounds, &cases, |case| {
                let (shaper, options) = case.start(mbps);
                self.transfer(self.iperf3(), shaper, &options)
            })?;
            let htb = middle(&found[1], |it| it.programs);
            for (case, values) in cases.iter().zip(&found) {
                case.print(mbps, values, htb);
            }
        }
        Ok(())
    }

    /// One connection of iperf3, of a `client` with `options`, beside a shaper, which ends with it.
    fn transfer(
        &self,
        client: std::process::Command,
        shaper: Option<Shaper>,
        options: &[String],
    ) -> Outcome<Carried> {
        let (began, cpu) = (Instant::now(), self.shaper_cpu());
        let (busy, programs) = (machine_busy()?, self.programs()?);
        let told = told(client, options)?;
        let elapsed = began.elapsed();
        let share = |time: Duration| time.as_secs_f64() / elapsed.as_secs_f64();
        let (busy, programs) = (share(machine_busy()? - busy), share(self.programs()? - programs));
        let cpu = share(self.shaper_cpu() - cpu);
        let came = came()?;
        let missed = shaper.map(Shaper::end).transpose()?.unwrap_or_default() as f64;
        let bps = told["end"]["sum_received"]["bits_per_second"].as_f64();
        let bps = bps.ok_or_else(|| format!("iperf3: {told}"))?;
        let bytes = told["end"]["sum_sent"]["bytes"].as_f64().unwrap_or_default();
        let bytes = if came > 0 { bytes / came as f64 } else { 0.0 };
        Ok(Carried { mbps: bps / 1e6, busy, cpu, programs: cpu + programs, missed, bytes })
    }

    /// Processor time of this process so far, without that of the path.
    fn shaper_cpu(&self) -> Duration {
        let all = Duration::from_nanos(weir_sockets::sys::time::process_cpu_ns());
        all.saturating_sub(self.late.spent())
    }

    /// Processor time of iperf3 at both ends so far, of clients that have ended.
    fn programs(&self) -> Outcome<Duration> {
        let children = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let micros =
            [children.user_time(), children.system_time()].map(|time| time.num_microseconds());
        let told = std::fs::read_to_string(format!("/proc/{}/stat", self.server))?;
        // The name of the program, in parentheses, may have anything in it (proc(5)).
        let columns = told.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = columns.skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
        let micros = micros.iter().map(|&it| it.unsigned_abs()).sum::<u64>() + ticks * 10_000;
        Ok(Duration::from_micros(micros))
    }

    /// Round trips of datagrams over the idle pair, in turn without and with the shaper.
    fn pings(&self) -> Outcome<()> {
        println!("round trip over the idle pair, us\n{:>24} {:>10} {:>8}", "", "median", "p99");
        let cases = [Case::Nothing, Case::Cake];
        let found = in_turn(self.rounds, &cases, |case| {
            let shaper = case.start();
            let found = round_trips(Duration::MAX)?;
            shaper.map(Shaper::end).transpose()?;
            Ok(found)
        })?;
        for (case, values) in cases.iter().zip(&found) {
            let [p50, p99] = [0, 1].map(|n| middle(values, |pair| pair[n]));
            println!("{:>24} {p50:>10.1} {p99:>8.1}", case.name());
        }
        Ok(())
    }

    /// Round trips of datagrams beside a connection that is held at a rate.
    fn loaded_pings(&self, all: &[u64]) -> Outcome<()> {
        println!("round trip beside a connection held at a rate, us");
        println!("{:>24} {:>10} {:>8}", "", "median", "p99");
        for &mbps in all {
            let cases = [Held::Kernel, Held::Userspace, Held::Cake, Held::FqCodel];
            let found = in_turn(self.rounds, &cases, |case| self.loaded_round_trips(case, mbps))?;
            for (case, values) in cases.iter().zip(&found) {
                let [p50, p99] = [0, 1].map(|n| middle(values, |pair| pair[n]));
                println!("{:>15} at {mbps:>5} {p50:>10.1} {p99:>8.1}", case.name());
            }
        }
        Ok(())
    }

    /// What two connections that are held at a rate together have of it.
    fn shares(&self, all: &[u64]) -> Outcome<()> {
        println!(
            "two TCP connections held at a rate: Mbit/s of both, the least part of one, sent again"
        );
        for &mbps in all {
            let cases = [Held::Cake, Held::FqCodel];
            let found = in_turn(self.rounds, &cases, |case| self.shared(case, mbps))?;
            for (case, values) in cases.iter().zip(&found) {
                let [both, least, again] = [0, 1, 2].map(|n| middle(values, |it| it[n]));
                println!("{:>15} at {mbps:>5} {both:>10.1} {least:>8.3} {again:>8.0}", case.name());
            }
        }
        Ok(())
    }

    /// A client of iperf3 at the near end.
    fn iperf3(&self) -> std::process::Command {
        self.client(&format!("iperf3 -B {NEAR}"))
    }

    /// The client of iperf3 that `command` starts.
    fn client(&self, command: &str) -> std::process::Command {
        let [program, arguments @ ..] = &words(command)[..] else { unreachable!("none is empty") };
        let mut client = std::process::Command::new(program);
        client.args(arguments).args(["-c", FAR, "-t", SECONDS]);
        client.args(self.control.iter().flat_map(|name| ["-C", name]));
        client
    }

    /// Mbit/s of two connections together, the part of that with less, and segments that were sent again.
    fn shared(&self, case: Held, mbps: u64) -> Outcome<[f64; 3]> {
        let (shaper, mut options) = case.start(mbps);
        options.extend(["-P", "2"].map(str::to_owned));
        let told = told(self.iperf3(), &options)?;
        shaper.map(Shaper::end).transpose()?;
        let streams = told["end"]["streams"].as_array().ok_or_else(|| format!("iperf3: {told}"))?;
        let bps = streams.iter().filter_map(|it| it["receiver"]["bits_per_second"].as_f64());
        let bps: Vec<f64> = bps.collect();
        let sum: f64 = bps.iter().sum();
        let least = bps.iter().copied().fold(f64::INFINITY, f64::min);
        let again = told["end"]["sum_sent"]["retransmits"].as_f64().unwrap_or_default();
        Ok([sum / 1e6, least / sum, again])
    }

    fn loaded_round_trips(&self, case: Held, mbps: u64) -> Outcome<[f64; 2]> {
        let (shaper, _) = case.start(mbps);
        let mut client = self.iperf3();
        let load =
            std::thread::spawn(move || client.output().is_ok_and(|done| done.status.success()));
        // Its first second is slow start.
        std::thread::sleep(Duration::from_secs(1));
        let found = round_trips(Duration::from_secs(2));
        let loaded = !load.is_finished();
        let done = load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        shaper.map(Shaper::end).transpose()?;
        if loaded && done { found } else { Err("iperf3 ended before the pings did".into()) }
    }
}

/// What `measure` finds of each case, in turn, of so many rounds.
fn in_turn<C: Copy, T>(
    rounds: usize,
    cases: &[C],
    mut measure: impl FnMut(C) -> Outcome<T>,
) -> Outcome<Vec<Vec<T>>> {
    let mut found: Vec<Vec<T>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (&case, into) in cases.iter().zip(&mut found) {
            into.push(measure(case)?);
        }
    }
    Ok(found)
}

fn middle<T>(values: &[T], of: impl Fn(&T) -> f64) -> f64 {
    median(&mut values.iter().map(of).collect::<Vec<_>>())
}

/// Who holds a connection at its rate.
#[derive(Clone, Copy)]
enum Held {
    /// iperf3 itself sends no more.
    Bare,
    Kernel,
    Userspace,
    /// The shaper with what it has by default.
    Cake,
    FqCodel,
}

impl Held {
    const fn name(self) -> &'static str {
        match self {
            Self::Bare => "sender itself",
            Self::Kernel => "kernel's htb",
            Self::Userspace => "shaper, pfifo",
            Self::Cake => "shaper, cake",
            Self::FqCodel => "fq_codel",
        }
    }

    /// Prints what it found of a rate, beside the processor time of programs with `htb`.
    fn print(self, mbps: u64, values: &[Carried], htb: f64) {
        let of = |value: fn(&Carried) -> f64| middle(values, value);
        let (carried, busy, bytes) = (of(|it| it.mbps), of(|it| it.busy), of(|it| it.bytes));
        let (cpu, programs) = (of(|it| it.cpu), of(|it| it.programs));
        let (name, ratio) = (self.name(), programs / htb);
        println!(
            "{name:>15} at {mbps:>5} {carried:>10.1} {busy:>8.3} {cpu:>10.3} {programs:>10.3} {ratio:>8.2} {bytes:>8.0}"
        );
    }

    /// The shaper, and what iperf3 is told.
    fn start(self, mbps: u64) -> (Option<Shaper>, Vec<String>) {
        let bps = mbps * 1_000_000;
        let shaper =
            |queue, backend| (Some(Shaper::start(Some(bps), queue, Some(backend))), vec![]);
        match self {
            Self::Bare => (None, vec!["-b".to_owned(), bps.to_string()]),
            Self::Kernel => shaper("pfifo", Backend::Kernel),
            Self::Userspace => shaper("pfifo", Backend::Userspace),
            Self::Cake => shaper("cake", Backend::Userspace),
            Self::FqCodel => shaper("fq_codel", Backend::Userspace),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Nothing,
    Open,
    Cake,
}

const CASES: [Case; 3] = [Case::Nothing, Case::Open, Case::Cake];

impl Case {
    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no shaper",
            Self::Open => "shaper, open",
            Self::Cake => "shaper, cake at 20gbit",
        }
    }

    fn start(self) -> Option<Shaper> {
        match self {
            Self::Nothing => None,
            Self::Open => Some(Shaper::start(None, "cake", None)),
            Self::Cake => Some(Shaper::start(Some(NEVER_REACHED_BPS), "cake", None)),
        }
    }
}

/// A shaper of the near end, both ways.
struct Shaper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Shaper {
    fn start(bps: Option<u64>, queue: &str, backend: Option<Backend>) -> Self {
        let settings = Settings {
            device: "near".to_owned(),
            control: Control::Fixed { egress_bps: bps, ingress_bps: bps },
            queues: [Some(queue.to_owned()), Some(queue.to_owned())],
            framing: Framing::ETHERNET,
            backend,
            // Nobody answers there: nothing but the packets is to be measured.
            reflectors: vec![weir_shape::Target::Icmp([127, 0, 0, 1].into())],
            auth: None,
            rules: None,
            time_ns: None,
            log: None,
            state: None,
            open: bps.is_none(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut missed = 0;
            let mut show = |view: &str| {
                let view: serde_json::Value = serde_json::from_str(view).unwrap_or_default();
                missed = view["missed"].as_u64().unwrap_or_default();
                if stopped.load(Ordering::Relaxed) { Command::Stop } else { Command::Continue }
            };
            let done = weir_shape::run(&settings, 1, &mut show);
            done.map(|_| missed).map_err(|error| error.to_string())
        });
        std::thread::sleep(Duration::from_millis(300));
        Self { stop, thread }
    }

    /// Packets that went past it.
    fn end(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Carried {
    mbps: f64,
    /// Processors of the machine that were busy, apart from those of processes that have given way (nice).
    busy: f64,
    /// Share of one processor that this process used.
    cpu: f64,
    /// Likewise, with iperf3 at both ends.
    programs: f64,
    missed: f64,
    /// Bytes of a packet that came to the shaper on the way out; 0 if none did.
    bytes: f64,
}

/// Heads of the columns that [`Held::print`] prints.
fn print_heads() {
    let heads = ["Mbit/s", "busy", "cpu share", "programs", "of htb's", "bytes"];
    println!(
        "{:>24} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8}",
        "", heads[0], heads[1], heads[2], heads[3], heads[4], heads[5]
    );
}

/// Packets that came to the shaper so far, on the way out: those of the first half of its queues.
fn came() -> Outcome<u64> {
    let told = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue")?;
    let mut rows: Vec<Vec<u64>> = told
        .lines()
        .map(|line| line.split_whitespace().filter_map(|it| it.parse().ok()).collect())
        .collect();
    rows.sort();
    // The last number of a packet, net/netfilter/nfnetlink_queue.c.
    Ok(rows[..rows.len() / 2].iter().filter_map(|row| row.get(7)).sum())
}

/// What a client of iperf3 with `options` tells.
fn told(mut client: std::process::Command, options: &[String]) -> Outcome<serde_json::Value> {
    let done = client.arg("-J").args(options).output();
    let done = done.map_err(|error| format!("cannot run iperf3: {error}"))?;
    Ok(serde_json::from_slice(&done.stdout)?)
}

/// Time that the machine's processors were busy since it started, apart from what had given way (nice).
fn machine_busy() -> Outcome<Duration> {
    let told = std::fs::read_to_string("/proc/stat")?;
    let ticks: Vec<u64> = told
        .lines()
        .next()
        .unwrap_or_default()
        .split(' ')
        .filter_map(|it| it.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq (proc(5)), in hundredths of a second.
    let [user, _, system, _, _, irq, softirq, ..] = ticks[..] else {
        return Err("/proc/stat has no times of processors".into());
    };
    Ok(Duration::from_millis((user + system + irq + softirq) * 10))
}

/// Answers datagrams at the far end from now on.
fn echo(far: &Namespace) -> Outcome<()> {
    let echo = far.within(|| {
        UdpSocket::bind((FAR, ECHO_PORT))
            .map_err(|error| weir_linux::LinuxError::new(error.to_string()))
    })?;
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok((len, from)) = echo.recv_from(&mut bytes) {
            let _ = echo.send_to(&bytes[..len], from);
        }
    });
    Ok(())
}

/// Round trips of [`PINGS`] datagrams, or of those that come back `within` that time: median and 99th percentile.
fn round_trips(within: Duration) -> Outcome<[f64; 2]> {
    // Answers to this address are never late.
    let near = UdpSocket::bind((NEAR_TOO, 0))?;
    near.connect((FAR, ECHO_PORT))?;
    near.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut all = Vec::new();
    let began = Instant::now();
    while all.len() < PINGS && began.elapsed() < within {
        let sent = Instant::now();
        near.send(&[0; 16])?;
        near.recv(&mut [0; 64])?;
        all.push(sent.elapsed().as_nanos() as f64 / 1e3);
        // At another time within what the shaper does again and again, each time.
        let part = (all.len() as f64 * GOLDEN_RATIO).fract();
        std::thread::sleep(Duration::from_millis(1).mul_f64(1.0 + part));
    }
    all.sort_by(f64::total_cmp);
    Ok([all[all.len() / 2], all[all.len() * 99 / 100]])
}

/// A veth pair, one end here and the other in `far`.
fn connect(far: &Namespace) -> Outcome<()> {
    let holder = Program::start(&words("sleep 600"), far, Kind::Background)?;
    let there = holder.id();
    for command in [
        format!("ip link add near type veth peer name far netns {there}"),
        format!("ip addr add {NEAR}/24 dev near"),
        format!("ip addr add {NEAR_TOO}/24 dev near"),
        "ip link set lo up".to_owned(),
        "ip link set near up".to_owned(),
        format!("nsenter -n -t {there} ip addr add {FAR}/24 dev far"),
        format!("nsenter -n -t {there} ip link set far up"),
    ] {
        run(&command)?;
    }
    // It holds the namespace until this process, the first of its own, ends.
    std::mem::forget(holder);
    Ok(())
}

fn run(command: &str) -> Outcome<()> {
    let [program, arguments @ ..] = &words(command)[..] else { unreachable!("none is empty") };
    let status = std::process::Command::new(program).args(arguments).status();
    if !status.map_err(|error| format!("cannot run `{command}`: {error}"))?.success() {
        return Err(format!("`{command}` failed").into());
    }
    Ok(())
}

fn words(command: &str) -> Vec<OsString> {
    command.split(' ').map(OsString::from).collect()
}

const NEAR: &str = "10.77.0.1";
/// For what is not to be late.
const NEAR_TOO: &str = "10.77.0.3";
const FAR: &str = "10.77.0.2";
const ECHO_PORT: u16 = 7_007;
const PARTS: [&str; 6] = ["carried", "rates", "idle", "beside", "shares", "forwarded"];
const ROUNDS: usize = 3;
const SECONDS: &str = "4";
/// Lines of a DSL, a cable and a fibre.
const HELD_MBPS: [u64; 5] = [24, 50, 150, 500, 1_000];
const LOADED_MBPS: [u64; 4] = [20, 50, 150, 1_000];
const FORWARDED_MBPS: [u64; 2] = [50, 150];
/// Round trips.
const PATHS_MS: [u64; 2] = [0, 20];
const PINGS: usize = 1_000;
/// The multiples of this are spread over a period, however many there are.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
/// Far beyond what comes through, so that `cake` never holds anything back.
const NEVER_REACHED_BPS: u64 = 20_000_000_000;
