//! Namespaces without root: user_namespaces(7), network_namespaces(7), pid_namespaces(7).

#![allow(unsafe_code, reason = "fork and _exit are declared unsafe")]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid};

use crate::LinuxError;
use crate::clock::{MIN_REAL_TIME_PRIORITY, go_as_others, go_first_with_threads};
use crate::signals::{END_REQUESTS, HAND_ON_INTERRUPT, is_ignored};

/// Moves the calling process into user, network, mount and process namespaces of its own, in which it is
/// root and may do as it likes. Nothing outside changes.
///
/// The process goes on as a child of the caller, the first of its process namespace: when it ends, however
/// it does, everything that it has started ends too. What called waits for it, hands it the signals that ask
/// it to end, and exits as it does; SIGINT is not handed on, but [`HAND_ON_INTERRUPT`] is. Both die with their parents.
///
/// # Errors
/// If the process has threads already (Linux moves single-threaded processes only), or this machine
/// forbids user namespaces: the sentence names the setting.
pub fn isolate() -> Result<(), LinuxError> {
    let threads = fs::read_dir("/proc/self/task")
        .map_err(|error| LinuxError::io("cannot read /proc/self/task", error))?
        .count();
    if threads != 1 {
        return Err(LinuxError::new(format!(
            "a lab must be made before a process starts threads, and this one has {threads}"
        )));
    }
    // Whoever may lets the data path go before other programs later; inside of the lab nobody may.
    let _ = setrlimit(Resource::RLIMIT_NICE, MAX_PRIORITY, MAX_PRIORITY);
    let real_time = MIN_REAL_TIME_PRIORITY as u64;
    if setrlimit(Resource::RLIMIT_RTPRIO, real_time, real_time).is_err() {
        // Limits may be fixed where priorities are not: the data path's thread inherits one then.
        go_first_with_threads();
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| forbidden(&error))?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| {
            LinuxError::io(&format!("cannot become root in the lab ({file})"), error)
        })
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("0 {user} 1"))?;
    write("/proc/self/gid_map", format!("0 {group} 1"))?;
    let all = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    unshare(all).map_err(|error| LinuxError::io("cannot make namespaces for the lab", error))?;
    die_with_parent()?;
    become_first_process()?;
    // What is mounted from now on is seen by nobody else.
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|error| LinuxError::io("cannot make the lab's mounts its own", error))?;
    // Programs find their processes there. Some containers forbid it; then they see the host's.
    let _ = mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none);
    Ok(())
}

/// Goes on in a child, the first process of the new process namespace; the caller stays behind and ends
/// as the child does.
fn become_first_process() -> Result<(), LinuxError> {
    // One that is ignored would be handed out if it were held back.
    let requests = END_REQUESTS.into_iter().filter(|&signal| !is_ignored(signal));
    let signals: SigSet = requests.chain([HAND_ON_INTERRUPT, Signal::SIGCHLD]).collect();
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), Some(&mut before))
        .map_err(|error| LinuxError::io("cannot hold signals back", error))?;
    // SAFETY: the process has one thread, so the child is a whole process.
    match unsafe { fork() } {
        Err(error) => Err(LinuxError::io("cannot start the lab's process", error)),
        Ok(ForkResult::Child) => {
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)
                .map_err(|error| LinuxError::io("cannot let signals through", error))?;
            die_with_parent()
        }
        Ok(ForkResult::Parent { child }) => exit_as(child, &signals),
    }
}

/// Waits for `child`, hands requests to end on to it, and exits as it does.
fn exit_as(child: Pid, signals: &SigSet) -> ! {
    go_as_others();
    loop {
        match signals.wait() {
            // The terminal has sent Ctrl-C to the child as well; of one that came to the caller alone that tells it.
            Ok(Signal::SIGCHLD | Signal::SIGINT) | Err(_) => {}
            Ok(signal) => {
                let _ = kill(child, signal);
            }
        }
        let code = match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => code,
            Ok(WaitStatus::Signaled(_, signal, _)) => SIGNAL_EXIT + signal as i32,
            Err(nix::Error::ECHILD) => 1,
            _ => continue,
        };
        // SAFETY: ends this process at once, without what the child has done already at its own end.
        unsafe { libc::_exit(code) };
    }
}

fn die_with_parent() -> Result<(), LinuxError> {
    prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|error| LinuxError::io("cannot tie the lab to its parent process", error))
}

/// Why user namespaces cannot be had: the first setting that forbids them.
fn forbidden(error: &nix::Error) -> LinuxError {
    let setting = SWITCHES.iter().find(|switch| {
        fs::read_to_string(switch.file).is_ok_and(|value| value.trim() == switch.forbids)
    });
    LinuxError::new(match setting {
        Some(Switch { file, forbids, allows }) => {
            format!(
                "the lab needs user namespaces, which {file} = {forbids} forbids here: set it to {allows}"
            )
        }
        None => format!(
            "the lab needs user namespaces, which this kernel or a container's security profile forbids \
             ({error})"
        ),
    })
}

/// A setting that can forbid user namespaces.
struct Switch {
    file: &'static str,
    forbids: &'static str,
    allows: &'static str,
}

/// A network namespace. It ends when the last handle and the last thread in it do.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new network namespace, with nothing in it but a loopback device.
    ///
    /// # Errors
    /// If the kernel does not give one.
    pub fn new() -> Result<Self, LinuxError> {
        // A thread's namespace is its own; the rest of the process stays where it is.
        let made = std::thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        match made.join() {
            Ok(Ok(file)) => Ok(Self { file }),
            Ok(Err(error)) => Err(LinuxError::io("cannot make a network namespace", error)),
            Err(_) => Err(LinuxError::new("cannot make a network namespace: the thread died")),
        }
    }

    /// Moves the calling thread into the namespace.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Does `work` in the namespace, in a thread of its own, and returns what it returns.
    ///
    /// # Errors
    /// If `work` fails, with its error, or if the namespace cannot be entered.
    pub fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, LinuxError> + Send,
    ) -> Result<T, LinuxError> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter().map_err(|error| LinuxError::io("cannot enter a namespace", error))?;
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The limit that allows any priority (getrlimit(2): 20 less the nice value).
const MAX_PRIORITY: u64 = 40;
/// A process that a signal ended is told so, as shells do.
const SIGNAL_EXIT: i32 = 128;
const SWITCHES: &[Switch] = &[
    Switch { file: "/proc/sys/user/max_user_namespaces", forbids: "0", allows: "1000 or more" },
    Switch { file: "/proc/sys/user/max_net_namespaces", forbids: "0", allows: "1000 or more" },
    Switch { file: "/proc/sys/kernel/unprivileged_userns_clone", forbids: "0", allows: "1" },
    Switch {
        file: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        forbids: "1",
        allows: "0",
    },
];
