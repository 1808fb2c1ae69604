//! Programs of the user in a lab's namespaces.

#![allow(unsafe_code, reason = "what happens between fork and exec is declared unsafe")]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, setsid};
use weir_scenario::{ClientPaths, Scenario};

use weir_linux::{LinuxError, Namespace, go_as_others};

/// How a program belongs to whoever calls the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has this process' standard streams, and Ctrl-C of its terminal.
    Foreground,
    /// It reads nothing, its output goes to standard error, and Ctrl-C does not reach it.
    Background,
}

/// A program at work in a namespace.
#[derive(Debug)]
pub struct Program {
    child: Child,
    name: String,
}

impl Program {
    /// Starts `words`, a program and its arguments, in `namespace`.
    ///
    /// # Errors
    /// If there is no such program, or it cannot be started.
    pub fn start(
        words: &[OsString],
        namespace: &Namespace,
        kind: Kind,
    ) -> Result<Self, LinuxError> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(LinuxError::new("there is no program to run"));
        };
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments);
        // What a shaper in here learns is of a line that goes with the lab.
        command.env(weir_shape::STATE_VARIABLE, "none");
        if kind == Kind::Background {
            let errors = io::stderr().as_fd().try_clone_to_owned();
            let errors = errors.map_err(|error| LinuxError::io("no standard error", error))?;
            command.stdin(Stdio::null()).stdout(errors);
        }
        let fd = namespace.as_fd().as_raw_fd();
        // SAFETY: between fork and exec only system calls are made, of which all are safe there.
        unsafe {
            command.pre_exec(move || {
                // SAFETY: the namespace outlives the start.
                let target = std::os::fd::BorrowedFd::borrow_raw(fd);
                setns(target, CloneFlags::CLONE_NEWNET)?;
                // Only the data path goes first.
                go_as_others();
                if kind == Kind::Background {
                    setsid()?;
                }
                // Signals that are ignored stay so over exec(2), all others are as at first: so the
                // program is what `nohup` or a script's background made of this process.
                Ok(())
            });
        }
        let child = command
            .spawn()
            .map_err(|error| LinuxError::io(&format!("cannot run `{name}`"), error))?;
        Ok(Self { child, name })
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether anything in its network namespace can be reached: a TCP port that listens, or a UDP port.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        let has_port = |table: &str| {
            let text = fs::read_to_string(format!("/proc/{}/net/{table}", self.id()));
            text.is_ok_and(|text| text.lines().skip(1).any(|line| is_open(table, line)))
        };
        ["tcp", "tcp6", "udp", "udp6"].into_iter().any(has_port)
    }

    /// How the program has ended: its exit code, or 128 and the number of the signal; `None` while it goes
    /// on.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn ended(&mut self) -> Result<Option<i32>, LinuxError> {
        let status = self
            .child
            .try_wait()
            .map_err(|error| LinuxError::io(&format!("cannot wait for `{}`", self.name), error))?;
        Ok(status.map(|status| {
            status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
        }))
    }

    /// Sends the program what Ctrl-C does.
    pub fn interrupt(&self) {
        let _ = kill(self.pid(), Signal::SIGINT);
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Asks the program to end, and ends it if it does not within `patience`. Returns how it has ended, as
    /// far as the kernel tells.
    pub fn end(mut self, patience: std::time::Duration) -> Option<i32> {
        let until = std::time::Instant::now() + patience;
        let _ = kill(self.pid(), Signal::SIGTERM);
        while std::time::Instant::now() < until {
            match self.ended() {
                Ok(None) => std::thread::sleep(POLL),
                Ok(Some(code)) => return Some(code),
                Err(_) => return None,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ended().ok().flatten()
    }
}

/// Whether a line of one of the kernel's tables of sockets is one that anybody may send to.
fn is_open(table: &str, line: &str) -> bool {
    table.starts_with("udp") || line.split_whitespace().nth(3) == Some(LISTENS)
}

/// Makes the hosts of `scenario` known by their names to every program in this process' mount namespace,
/// beside those in /etc/hosts. A client's address on a path with a name is `client-` and the name; `server` is
/// the server as the first path reaches it.
///
/// # Errors
/// If the file cannot be laid over /etc/hosts.
pub fn name_hosts(scenario: &Scenario, paths: &ClientPaths) -> Result<(), LinuxError> {
    let fail = |error: &dyn std::fmt::Display| LinuxError::io("cannot name the lab's hosts", error);
    let mut text = fs::read_to_string(HOSTS).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = writeln!(text, "{}\tclient", scenario.client_address());
    if paths.are_named() {
        let _ = writeln!(text, "{}\tserver", scenario.server_address(0));
    }
    for (path, name) in (0..).zip(paths.names()) {
        let address = ClientPaths::client_address(scenario.ip_version, path);
        let _ = writeln!(text, "{address}\tclient-{name}");
    }
    for (number, host) in scenario.hosts.iter().enumerate() {
        let _ = writeln!(text, "{}\t{}", scenario.server_address(number as u32), host.name);
    }
    // A file that nobody else sees and that goes with the namespace: on a file system in memory, which
    // covers the folder only until the file is in its place.
    let none: Option<&str> = None;
    let cover = "/tmp";
    mount(Some("weir"), cover, Some("tmpfs"), MsFlags::empty(), none)
        .map_err(|error| fail(&error))?;
    let file = format!("{cover}/hosts");
    let placed = fs::write(&file, text).map_err(|error| fail(&error)).and_then(|()| {
        mount(Some(file.as_str()), HOSTS, none, MsFlags::MS_BIND, none)
            .map_err(|error| fail(&error))
    });
    umount2(cover, MntFlags::MNT_DETACH).map_err(|error| fail(&error))?;
    placed
}

const HOSTS: &str = "/etc/hosts";
/// `TCP_LISTEN` of include/net/tcp_states.h, as /proc/net/tcp writes it.
const LISTENS: &str = "0A";
const POLL: std::time::Duration = std::time::Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_listens_is_open_and_one_that_is_connected_is_not() {
        let line = |state| format!("   0: 00000000:1F90 00000000:0000 {state} 00000000:00000000");
        assert!(is_open("tcp", &line("0A")));
        assert!(!is_open("tcp6", &line("01")));
        assert!(is_open("udp", &line("07")));
    }
}
