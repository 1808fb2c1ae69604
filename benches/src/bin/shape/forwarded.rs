//! A router's case: a connection of a host behind the near end, which forwards it and holds it back.
//!
//! What the host sends comes as GSO packets of any length, as it made them, or one segment after another, of which the
//! near end makes GSO packets as a network card's driver does (GRO).

use super::{Bench, Held, NEAR, Outcome, in_turn, middle, print_heads, run, words};
use weir_lab::{Kind, Program};
use weir_linux::Namespace;

/// The host behind the near end.
pub struct Home {
    /// A process in its namespace.
    holder: u32,
}

/// How the packets of the host come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Whole,
    Joined,
}

impl Home {
    /// A host behind the near end, which `far` reaches, the namespace of the process `there`.
    pub fn new(there: u32) -> Outcome<Self> {
        let holder = Program::start(&words("sleep 900"), &Namespace::new()?, Kind::Background)?;
        let home = holder.id();
        for command in [
            format!("ip link add lan type veth peer name home netns {home}"),
            format!("ip addr add {LAN}/24 dev lan"),
            "ip link set lan up".to_owned(),
            "sysctl -qw net.ipv4.ip_forward=1".to_owned(),
            format!("nsenter -n -t {home} ip addr add {HOME}/24 dev home"),
            format!("nsenter -n -t {home} ip link set home up"),
            format!("nsenter -n -t {home} ip route add default via {LAN}"),
            format!("nsenter -n -t {there} ip route add {HOME}/32 via {NEAR} dev far metric 100"),
        ] {
            run(&command)?;
        }
        // It holds the namespace until this process, the first of its own, ends.
        std::mem::forget(holder);
        Ok(Self { holder: home })
    }

    /// Its address, and how packets go there from the far end that are not late.
    pub fn route(&self) -> (&'static str, String) {
        (HOME, format!("via {NEAR} dev far"))
    }

    fn send(&self, how: Sent) -> Outcome<()> {
        let on = if how == Sent::Joined { ["off", "on"] } else { ["on", "off"] };
        run(&format!("nsenter -n -t {} ethtool -K home tso {} gso {}", self.holder, on[0], on[0]))?;
        run(&format!("ethtool -K lan gro {}", on[1]))
    }
}

impl Bench {
    /// What it costs to hold back what is forwarded, and how long packets are that come to this process.
    pub(super) fn forwarded(&self, home: &Home, all: &[u64]) -> Outcome<()> {
        println!(
            "one TCP connection that is forwarded and held at a rate, medians of {} rounds",
            self.rounds
        );
        print_heads();
        for &mbps in all {
            for (how, name) in [(Sent::Whole, "GSO packets"), (Sent::Joined, "joined by GRO")] {
                home.send(how)?;
                let cases = [Held::Kernel, Held::Userspace, Held::Cake, Held::FqCodel];
                let found = in_turn(self.rounds, &cases, |case| {
                    let (shaper, _) = case.start(mbps);
                    let client = self.client(&format!("nsenter -n -t {} iperf3", home.holder));
                    self.transfer(client, shaper, &[])
                })?;
                let htb = middle(&found[0], |it| it.programs);
                println!("{name}");
                for (case, values) in cases.iter().zip(&found) {
                    case.print(mbps, values, htb);
                }
            }
        }
        Ok(())
    }
}

const LAN: &str = "10.78.0.1";
const HOME: &str = "10.78.0.2";
