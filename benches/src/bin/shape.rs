//! Throughput, processor time and delay of the userspace shaper: `make bench-shape` (needs iperf3 and iproute2).
//!
//! Two network namespaces, a veth pair between them, one TCP connection of iperf3. Measured in turn within
//! the same minute: nothing, the shaper with everything let through, and the shaper at a rate that is never
//! reached, so that every packet goes through `cake`. Then pings over the idle pair, without and with it.

use std::ffi::OsString;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_core::Framing;
use weir_lab::Program;
use weir_linux::Namespace;
use weir_rate_control::Control;
use weir_shape::{Command, Settings};

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
    let _server = Program::start(&words("iperf3 -s --logfile /dev/null"), &far, true)?;
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
        let of = |value: fn(&Carried) -> f64| median(values.iter().map(value).collect());
        let mbps = of(|it| it.mbps);
        let ratio = mbps / *plain.get_or_insert(mbps);
        let (cpu, missed) = (of(|it| it.cpu), of(|it| it.missed));
        println!("{:>24} {mbps:>10.0} {ratio:>8.3} {cpu:>10.2} {missed:>8.0}", case.name());
    }
    pings(&far)
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
            Self::Open => Some(Shaper::start(None)),
            Self::Cake => Some(Shaper::start(Some(NEVER_REACHED_BPS))),
        }
    }
}

/// A shaper of the near end, both ways.
struct Shaper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Shaper {
    fn start(bps: Option<u64>) -> Self {
        let settings = Settings {
            device: "near".to_owned(),
            control: Control::Fixed { egress_bps: bps, ingress_bps: bps },
            queues: [Some("cake".to_owned()), Some("cake".to_owned())],
            framing: Framing::ETHERNET,
            backend: None,
            // Nobody answers there: nothing but the packets is to be measured.
            reflectors: vec![weir_shape::Target::Icmp([127, 0, 0, 1].into())],
            auth: None,
            rules: None,
            time_ns: None,
            log: None,
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
    /// Share of one processor that this process used.
    cpu: f64,
    missed: f64,
}

fn carried(case: Case) -> Outcome<Carried> {
    let shaper = case.start();
    let (began, cpu) = (Instant::now(), weir_sockets::sys::time::process_cpu_ns());
    let done = std::process::Command::new("iperf3")
        .args(["-c", FAR, "-t", SECONDS, "-J"])
        .output()
        .map_err(|error| format!("cannot run iperf3: {error}"))?;
    let cpu = (weir_sockets::sys::time::process_cpu_ns() - cpu) as f64
        / began.elapsed().as_nanos() as f64;
    let missed = shaper.map(Shaper::end).transpose()?.unwrap_or_default() as f64;
    let told: serde_json::Value = serde_json::from_slice(&done.stdout)?;
    let bps = told["end"]["sum_received"]["bits_per_second"].as_f64();
    let bps = bps.ok_or_else(|| format!("iperf3: {}", String::from_utf8_lossy(&done.stdout)))?;
    Ok(Carried { mbps: bps / 1e6, cpu, missed })
}

/// Round trips of datagrams over the idle pair, in turn without and with the shaper.
fn pings(far: &Namespace) -> Outcome<()> {
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
    println!("round trip over the idle pair, us\n{:>24} {:>10} {:>8}", "", "median", "p99");
    let mut found: [Vec<[f64; 2]>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (case, into) in [Case::Nothing, Case::Cake].iter().zip(&mut found) {
            let shaper = case.start();
            into.push(round_trips()?);
            shaper.map(Shaper::end).transpose()?;
        }
    }
    for (case, values) in [Case::Nothing, Case::Cake].iter().zip(&found) {
        let [p50, p99] = [0, 1].map(|n| median(values.iter().map(|pair| pair[n]).collect()));
        println!("{:>24} {p50:>10.1} {p99:>8.1}", case.name());
    }
    Ok(())
}

fn round_trips() -> Outcome<[f64; 2]> {
    let near = UdpSocket::bind("0.0.0.0:0")?;
    near.connect((FAR, ECHO_PORT))?;
    near.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut all = Vec::new();
    for _ in 0..PINGS {
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
    let holder = Program::start(&words("sleep 600"), far, true)?;
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const NEAR: &str = "10.77.0.1";
const FAR: &str = "10.77.0.2";
const ECHO_PORT: u16 = 7_007;
const ROUNDS: usize = 3;
const SECONDS: &str = "4";
const PINGS: usize = 1_000;
/// Far beyond what comes through, so that `cake` never holds anything back.
const NEVER_REACHED_BPS: u64 = 20_000_000_000;
