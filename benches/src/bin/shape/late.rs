//! A path whose answers come late, as from a server that is far away.
//!
//! What the far end sends to the near one goes through a TUN device of its own first, whose packets a thread writes
//! back some time after it has read them. What it receives comes as it was sent, GSO packets whole.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use weir_linux::{Namespace, PacketDevice, Tun};
use weir_packet::Virtio;

/// The way back, which may be late.
pub struct Late {
    far: u32,
    near: Vec<&'static str>,
    delay_ns: Arc<AtomicU64>,
    spent_ns: Arc<AtomicU64>,
}

impl Late {
    /// A way back from `far`, the namespace of the process `pid` there, to the addresses `near`, each with how packets
    /// go there that are not late; not late yet.
    pub fn new(far: &Namespace, pid: u32, near: &[(&'static str, String)]) -> super::Outcome<Self> {
        let tun = far.within(|| {
            Tun::new("late", false).map_err(|error| weir_linux::LinuxError::new(error.to_string()))
        })?;
        for command in [
            "ip link set late up",
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.late.accept_local=1",
            "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.late.rp_filter=0",
            "ip rule add pref 100 iif late lookup 100",
        ] {
            super::run(&format!("nsenter -n -t {pid} {command}"))?;
        }
        for (address, how) in near {
            super::run(&format!("nsenter -n -t {pid} ip route add {address}/32 {how} table 100"))?;
        }
        let near = near.iter().map(|(address, _)| *address).collect();
        let (delay_ns, spent_ns) = <(Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let (delay, spent) = (Arc::clone(&delay_ns), Arc::clone(&spent_ns));
        std::thread::spawn(move || hold_back(tun, &delay, &spent));
        Ok(Self { far: pid, near, delay_ns, spent_ns })
    }

    /// From now on answers come so late; at once if that is no time at all.
    pub fn set(&self, delay: Duration) -> super::Outcome<()> {
        let before = self.delay_ns.swap(delay.as_nanos() as u64, Ordering::Relaxed);
        let route = |what| {
            self.near.iter().try_for_each(|near| {
                super::run(&format!(
                    "nsenter -n -t {} ip route {what} {near}/32 dev late",
                    self.far
                ))
            })
        };
        match (before > 0, !delay.is_zero()) {
            (false, true) => route("add"),
            (true, false) => route("del"),
            _ => Ok(()),
        }
    }

    /// Processor time of the thread that keeps them so far.
    pub fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent_ns.load(Ordering::Relaxed))
    }
}

fn hold_back(mut tun: Tun, delay_ns: &AtomicU64, spent_ns: &AtomicU64) {
    let mut held: VecDeque<(Instant, Virtio, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; 1 << 17];
    let _ = nix::sys::prctl::set_timerslack(1);
    weir_linux::go_first();
    loop {
        let delay = Duration::from_nanos(delay_ns.load(Ordering::Relaxed));
        while let Ok(Some((virtio, len))) = tun.receive(&mut buffer) {
            held.push_back((Instant::now() + delay, virtio, buffer[..len].to_vec()));
        }
        while held.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
            let (_, virtio, bytes) = held.pop_front().expect("there is one");
            // What a device that is gone does not take is lost.
            let _ = tun.send(&virtio, &bytes, &[]);
        }
        if let Ok(spent) = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID) {
            spent_ns.store(Duration::from(spent).as_nanos() as u64, Ordering::Relaxed);
        }
        let pause = held.front().map(|(due, ..)| due.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(tun.fd(), PollFlags::POLLIN)];
        if ppoll(&mut fds, pause.map(TimeSpec::from_duration), None).is_err() {
            return;
        }
    }
}
