//! `weir-agent ping` sends real probes: on loopback, and past a router in namespaces of its own.

use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Output};

use weir_sockets::Reflector;

const AGENT: &str = env!("CARGO_BIN_EXE_weir-agent");

/// What `weir-agent ping` with `words` printed to both streams, and its exit code.
fn ping(words: &str) -> (String, String, Option<i32>) {
    said(Command::new(AGENT).arg("ping").args(words.split_whitespace()))
}

fn said(command: &mut Command) -> (String, String, Option<i32>) {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let [out, err] = [stdout, stderr].map(|text| String::from_utf8(text).expect("text"));
    (out, err, status.code())
}

/// A port of loopback at which nobody is.
fn closed_port() -> u16 {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    udp.local_addr().expect("an address").port()
}

#[test]
fn this_host_answers_icmp() {
    if Reflector::icmp_is_forbidden(1) {
        eprintln!("not tried: this user may send no ICMP echo");
        return;
    }
    let (out, err, code) = ping("127.0.0.1 --count 3 --ping 5ms");
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert_eq!(out.lines().filter(|line| line.ends_with(" ms")).count(), 4, "{out}");
    assert!(out.contains("127.0.0.1: 3 of 3 pings answered; least "), "{out}");
}

#[test]
fn a_closed_port_answers_udp() {
    let (out, err, code) = ping(&format!(
        "127.0.0.1 --method udp --port {} --count 3 --ping 5ms --timeout 1s",
        closed_port()
    ));
    assert_eq!((err.as_str(), code), ("", Some(0)), "{out}");
    // Linux lets a host send no more than some of these a second.
    assert!(out.contains(" ms, 127.0.0.1 (port unreachable)\n"), "{out}");
    assert!(out.contains("\nanswered by 127.0.0.1 (port unreachable): "), "{out}");
}

#[test]
fn a_server_takes_connections_and_a_closed_port_refuses_them() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let words = "--method tcp --count 3 --ping 5ms --port";
    let taken = ping(&format!("127.0.0.1 {words} {port}"));
    assert_eq!((taken.1.as_str(), taken.2), ("", Some(0)));
    assert!(taken.0.contains("127.0.0.1: 3 of 3 pings answered; least "), "{}", taken.0);
    drop(server);
    let (out, err, code) = ping(&format!("127.0.0.1 {words} {port}"));
    assert_eq!(err, "weir-agent: none of 3 pings was answered by `127.0.0.1`\n");
    assert_eq!(code, Some(1));
    assert!(out.ends_with("\nconnection refused: 3\n"), "{out}");
    assert_eq!(out.lines().filter(|line| line.ends_with("  lost")).count(), 3, "{out}");
}

#[test]
fn a_router_answers_where_the_time_to_live_ends() {
    let new = ["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"];
    let inside = |script: &str| {
        said(Command::new("unshare").args(new).args(["sh", "-ec", script, "sh", AGENT]))
    };
    let tried = inside("command -v ip >/dev/null && mount -t tmpfs none /run");
    if tried.2 != Some(0) {
        eprintln!("not tried: there are no namespaces, or no `ip`: {}", tried.1);
        return;
    }
    for method in ["icmp", "udp"] {
        let (out, err, code) = inside(&ROUTER.replace("METHOD", method));
        assert_eq!((err.as_str(), code), ("", Some(0)), "{out}");
        assert!(out.contains("10.77.2.2: 3 of 3 pings answered; least "), "{out}");
        assert!(out.ends_with("answered by 10.77.1.2 (time exceeded): 3\n"), "{out}");
    }
}

/// This namespace, a router, and a net behind it.
const ROUTER: &str = "
mount -t tmpfs none /run
ip netns add router
ip link add wan type veth peer name lan netns router
ip addr add 10.77.1.1/24 dev wan
ip -n router addr add 10.77.1.2/24 dev lan
ip -n router link add net type veth peer name far
ip -n router addr add 10.77.2.1/24 dev net
for device in lan net far; do ip -n router link set $device up; done
ip link set wan up
ip route add default via 10.77.1.2
ip netns exec router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'
\"$1\" ping 10.77.2.2 --method METHOD --ttl 1 --count 3 --ping 5ms
";
