//! Throughput, processor time and delay of the userspace shaper: `make bench-shape` (needs iperf3 and iproute2).
//!
//! Two network namespaces, a veth pair between them, one TCP connection of iperf3. Measured in turn within
//! the same minute: nothing, the shaper with everything let through, and the shaper at a rate that is never
//! reached, so that every packet goes through `cake`. Then rates that hold packets back, beside the kernel's own
//! `htb` at the same rate. Then pings over the idle pair, without and with it, and beside a connection that is held
//! at a rate.

use std::ffi::OsString;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_benches::median;
use weir_core::Framing;
use weir_lab::{Kind, Program};
use weir_linux::Namespace;
use weir_rate_control::Control;
use weir_shape::{Backend, Command, Settings};

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
    weir_linux::isolate()?;
    let far = Namespace::new()?;
    connect(&far)?;
    let _server = Program::start(&words("iperf3 -s --logfile /dev/null"), &far, Kind::Background)?;
    std::thread::sleep(Duration::from_millis(300));

    println!("one TCP connection over a veth pair, medians of {ROUNDS} rounds of {SECONDS} s");
    println!("{:>24} {:>10} {:>8} {:>10} {:>8}", "", "Mbit/s", "ratio", "cpu share", "passed");
    let mut found: [Vec<Carried>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (case, into) in CASES.iter().zip(&mut found) {
            into.push(carried(*case)?);
        }
    }
    let mut plain = None;
    for (case, values) in CASES.iter().zip(&found) {
        let of =
            |value: fn(&Carried) -> f64| median(&mut values.iter().map(value).collect::<Vec<_>>());
        let mbps = of(|it| it.mbps);
        let ratio = mbps / *plain.get_or_insert(mbps);
        let (cpu, missed) = (of(|it| it.cpu), of(|it| it.missed));
        println!("{:>24} {mbps:>10.0} {ratio:>8.3} {cpu:>10.2} {missed:>8.0}", case.name());
    }
    rates()?;
    echo(&far)?;
    pings()?;
    loaded_pings()
}

/// What it costs to hold one connection at a rate: in the kernel's `htb`, and in this process.
fn rates() -> Outcome<()> {
    println!("one TCP connection held at a rate, medians of {ROUNDS} rounds of {SECONDS} s");
    println!("the machine's processors are busy with it for so many seconds a second");
    println!("{:>24} {:>10} {:>8} {:>10}", "", "Mbit/s", "busy", "cpu share");
    for mbps in HELD_MBPS {
        let cases = [Held::Bare, Held::Kernel, Held::Userspace, Held::Cake];
        let mut found: [Vec<Carried>; 4] = Default::default();
        for _ in 0..ROUNDS {
            for (case, into) in cases.iter().zip(&mut found) {
                into.push(held(*case, mbps)?);
            }
        }
        for (case, values) in cases.iter().zip(&found) {
            let of = |value: fn(&Carried) -> f64| {
                median(&mut values.iter().map(value).collect::<Vec<_>>())
            };
            let (carried, busy, cpu) = (of(|it| it.mbps), of(|it| it.busy), of(|it| it.cpu));
            println!("{:>15} at {mbps:>5} {carried:>10.1} {busy:>8.3} {cpu:>10.3}", case.name());
        }
    }
    Ok(())
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
}

impl Held {
    const fn name(self) -> &'static str {
        match self {
            Self::Bare => "sender itself",
            Self::Kernel => "kernel's htb",
            Self::Userspace => "shaper, pfifo",
            Self::Cake => "shaper, cake",
        }
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
        }
    }
}

fn held(case: Held, mbps: u64) -> Outcome<Carried> {
    let (shaper, options) = case.start(mbps);
    transfer(shaper, &options)
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
    missed: f64,
}

fn carried(case: Case) -> Outcome<Carried> {
    transfer(case.start(), &[])
}

/// One connection of iperf3 with `options` beside a shaper, which ends with it.
fn transfer(shaper: Option<Shaper>, options: &[String]) -> Outcome<Carried> {
    let (began, cpu) = (Instant::now(), weir_sockets::sys::time::process_cpu_ns());
    let busy = machine_busy()?;
    let done = std::process::Command::new("iperf3")
        .args(["-c", FAR, "-t", SECONDS, "-J"])
        .args(options)
        .output()
        .map_err(|error| format!("cannot run iperf3: {error}"))?;
    let elapsed = began.elapsed();
    let busy = (machine_busy()? - busy).as_secs_f64() / elapsed.as_secs_f64();
    let cpu = (weir_sockets::sys::time::process_cpu_ns() - cpu) as f64 / elapsed.as_nanos() as f64;
    let missed = shaper.map(Shaper::end).transpose()?.unwrap_or_default() as f64;
    let told: serde_json::Value = serde_json::from_slice(&done.stdout)?;
    let bps = told["end"]["sum_received"]["bits_per_second"].as_f64();
    let bps = bps.ok_or_else(|| format!("iperf3: {}", String::from_utf8_lossy(&done.stdout)))?;
    Ok(Carried { mbps: bps / 1e6, busy, cpu, missed })
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

/// Round trips of datagrams over the idle pair, in turn without and with the shaper.
fn pings() -> Outcome<()> {
    println!("round trip over the idle pair, us\n{:>24} {:>10} {:>8}", "", "median", "p99");
    let mut found: [Vec<[f64; 2]>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (case, into) in [Case::Nothing, Case::Cake].iter().zip(&mut found) {
            let shaper = case.start();
            into.push(round_trips(Duration::MAX)?);
            shaper.map(Shaper::end).transpose()?;
        }
    }
    for (case, values) in [Case::Nothing, Case::Cake].iter().zip(&found) {
        let [p50, p99] =
            [0, 1].map(|n| median(&mut values.iter().map(|pair| pair[n]).collect::<Vec<_>>()));
        println!("{:>24} {p50:>10.1} {p99:>8.1}", case.name());
    }
    Ok(())
}

/// Round trips of datagrams beside a connection that is held at a rate.
fn loaded_pings() -> Outcome<()> {
    println!("round trip beside a connection held at a rate, us");
    println!("{:>24} {:>10} {:>8}", "", "median", "p99");
    for mbps in LOADED_MBPS {
        let cases = [Held::Kernel, Held::Userspace, Held::Cake];
        let mut found: [Vec<[f64; 2]>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for (case, into) in cases.iter().zip(&mut found) {
                into.push(loaded_round_trips(*case, mbps)?);
            }
        }
        for (case, values) in cases.iter().zip(&found) {
            let [p50, p99] =
                [0, 1].map(|n| median(&mut values.iter().map(|pair| pair[n]).collect::<Vec<_>>()));
            println!("{:>15} at {mbps:>5} {p50:>10.1} {p99:>8.1}", case.name());
        }
    }
    Ok(())
}

fn loaded_round_trips(case: Held, mbps: u64) -> Outcome<[f64; 2]> {
    let (shaper, _) = case.start(mbps);
    let load = std::thread::spawn(|| {
        let done = std::process::Command::new("iperf3").args(["-c", FAR, "-t", SECONDS]).output();
        done.is_ok_and(|done| done.status.success())
    });
    // Its first second is slow start.
    std::thread::sleep(Duration::from_secs(1));
    let found = round_trips(Duration::from_secs(2));
    let loaded = !load.is_finished();
    let done = load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    shaper.map(Shaper::end).transpose()?;
    if loaded && done { found } else { Err("iperf3 ended before the pings did".into()) }
}

/// Round trips of [`PINGS`] datagrams, or of those that come back `within` that time: median and 99th percentile.
fn round_trips(within: Duration) -> Outcome<[f64; 2]> {
    let near = UdpSocket::bind("0.0.0.0:0")?;
    near.connect((FAR, ECHO_PORT))?;
    near.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut all = Vec::new();
    let began = Instant::now();
    while all.len() < PINGS && began.elapsed() < within {
        let sent = Instant::now();
        near.send(&[0; 16])?;
        near.recv(&mut [0; 64])?;
        all.push(sent.elapsed().as_nanos() as f64 / 1e3);
        std::thread::sleep(Duration::from_millis(1));
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
        "ip link set lo up".to_owned(),
        "ip link set near up".to_owned(),
        format!("nsenter -n -t {there} ip addr add {FAR}/24 dev far"),
        format!("nsenter -n -t {there} ip link set far up"),
    ] {
        let [program, arguments @ ..] = &words(&command)[..] else { unreachable!("none is empty") };
        let status = std::process::Command::new(program).args(arguments).status();
        if !status.map_err(|error| format!("cannot run `{command}`: {error}"))?.success() {
            return Err(format!("`{command}` failed").into());
        }
    }
    // It holds the namespace until this process, the first of its own, ends.
    std::mem::forget(holder);
    Ok(())
}

fn words(command: &str) -> Vec<OsString> {
    command.split(' ').map(OsString::from).collect()
}

const NEAR: &str = "10.77.0.1";
const FAR: &str = "10.77.0.2";
const ECHO_PORT: u16 = 7_007;
const ROUNDS: usize = 3;
const SECONDS: &str = "4";
/// Lines of a DSL, a cable and a fibre.
const HELD_MBPS: [u64; 4] = [24, 150, 500, 1_000];
const LOADED_MBPS: [u64; 3] = [20, 150, 1_000];
const PINGS: usize = 1_000;
/// Far beyond what comes through, so that `cake` never holds anything back.
const NEVER_REACHED_BPS: u64 = 20_000_000_000;
