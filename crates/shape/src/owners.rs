//! Owners of packets: programs and groups of processes, by the ports of their sockets.
//!
//! The kernel does not tell a program whose a packet is that it hands over (NFQUEUE tells the user alone, and of
//! packets that go out alone), so the tables of sockets in `/proc/net` and the open files of all processes
//! say it (proc(5)), which works both ways and on any kernel. They are read in a thread of their own, when a port
//! comes up that nobody is known to have: the first packets of a connection, some ten milliseconds of it,
//! are still of the class that other rules give them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::ShapeError;

/// Process that has a socket: its names and its control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The process' name, and that of its file.
    names: [String; 2],
    /// Control group of the process, without the `/` in front.
    cgroup: String,
}

impl Owner {
    /// Whether one of these is its name, or there are none.
    pub fn is_one_of(&self, programs: &[String]) -> bool {
        programs.is_empty() || programs.iter().any(|program| self.names.contains(program))
    }

    /// Whether it is within one of these groups, or there are none.
    pub fn is_within(&self, groups: &[String]) -> bool {
        let within = |group: &String| {
            let rest = self.cgroup.strip_prefix(group.trim_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        groups.is_empty() || groups.iter().any(within)
    }
}

/// Whether processes are seen here at all: in an empty root they are not.
pub(crate) fn owners_are_seen() -> bool {
    fs::read_dir("/proc/self/fd").is_ok()
}

/// Sockets by protocol and port.
type Table = BTreeMap<(u8, u16), Arc<Owner>>;

/// Processes by the ports of their sockets.
#[derive(Debug)]
pub(crate) struct Owners {
    table: Arc<Mutex<Table>>,
    /// Whether it has changed since somebody asked.
    news: Arc<AtomicBool>,
    ask: SyncSender<()>,
}

impl Owners {
    /// Begins to look, now and at least that often.
    pub fn new(often: Duration) -> Result<Self, ShapeError> {
        let table = Arc::new(Mutex::new(Table::new()));
        let news = Arc::new(AtomicBool::new(false));
        let (ask, asked) = sync_channel(1);
        let _ = ask.try_send(());
        let shared = (Arc::clone(&table), Arc::clone(&news));
        std::thread::Builder::new()
            .name("owners".to_owned())
            .spawn(move || look(&shared.0, &shared.1, often, &asked))
            .map_err(|error| ShapeError::io("cannot start a thread", error))?;
        Ok(Self { table, news, ask })
    }

    /// Whether anything has changed since this was asked last.
    pub fn have_news(&self) -> bool {
        self.news.swap(false, Ordering::Relaxed)
    }

    /// Protocols and ports of those whom `is_meant` means.
    pub fn ports(&self, is_meant: impl Fn(&Owner) -> bool) -> BTreeSet<(u8, u16)> {
        let Ok(table) = self.table.lock() else { return BTreeSet::new() };
        table.iter().filter(|(_, owner)| is_meant(owner)).map(|(port, _)| *port).collect()
    }

    /// The process that has a port, if it is known; otherwise it is looked up, for packets to come.
    pub fn of(&mut self, protocol: u8, port: u16) -> Option<Arc<Owner>> {
        if !PROTOCOLS.iter().any(|&(number, _)| number == protocol) {
            return None;
        }
        let found = self.table.lock().ok()?.get(&(protocol, port)).cloned();
        if found.is_none() {
            // One look under way or to come is enough.
            let _ = self.ask.try_send(());
        }
        found
    }
}

/// Looks whenever it is asked, and at times without being asked: sockets close and others get their ports.
fn look(table: &Mutex<Table>, news: &AtomicBool, often: Duration, asked: &Receiver<()>) {
    use std::sync::mpsc::RecvTimeoutError::Disconnected;
    while asked.recv_timeout(often) != Err(Disconnected) {
        let found = read();
        match table.lock() {
            Ok(mut table) if *table != found => {
                *table = found;
                news.store(true, Ordering::Relaxed);
            }
            Ok(_) => {}
            Err(_) => return,
        }
        std::thread::sleep(PAUSE);
    }
}

fn read() -> Table {
    let mut sockets = BTreeMap::new();
    for (protocol, name) in PROTOCOLS {
        for file in
            [format!("/proc/thread-self/net/{name}"), format!("/proc/thread-self/net/{name}6")]
        {
            let text = fs::read_to_string(file).unwrap_or_default();
            let found = text.lines().skip(1).filter_map(socket);
            sockets.extend(found.map(|(port, inode)| (inode, (protocol, port))));
        }
    }
    let mut table = Table::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let folder = process.path();
        let is_process =
            process.file_name().to_string_lossy().bytes().all(|it| it.is_ascii_digit());
        let mut owner = None;
        // Processes that end meanwhile, or that this user may not look into, own nothing.
        let files = is_process.then(|| fs::read_dir(folder.join("fd")).ok()).flatten();
        for open in files.into_iter().flatten().flatten() {
            let Ok(link) = fs::read_link(open.path()) else { continue };
            let Some(key) = inode(&link.to_string_lossy()).and_then(|it| sockets.get(&it)) else {
                continue;
            };
            let owner = owner.get_or_insert_with(|| {
                let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
                let exe = fs::read_link(folder.join("exe")).unwrap_or_default();
                let file = exe.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let cgroup = group(&text("cgroup")).to_owned();
                Arc::new(Owner { names: [text("comm").trim().to_owned(), file], cgroup })
            });
            table.insert(*key, Arc::clone(owner));
        }
    }
    table
}

/// Port and inode of a line of `/proc/net/tcp` or `udp`.
fn socket(line: &str) -> Option<(u16, u64)> {
    let mut fields = line.split_whitespace();
    let port = u16::from_str_radix(fields.nth(1)?.rsplit_once(':')?.1, 16).ok()?;
    let inode = fields.nth(7)?.parse().ok().filter(|&inode| inode != 0)?;
    Some((port, inode))
}

/// The inode in `socket:[N]`.
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The group of version 2 in `/proc/PID/cgroup`, without the `/` in front.
fn group(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.strip_prefix("0::/"));
    line.unwrap_or_default().trim_matches('/')
}

/// Protocols that have ports, and their tables.
const PROTOCOLS: [(u8, &str); 2] = [(6, "tcp"), (17, "udp")];
/// Between two looks at least: one takes some milliseconds on a machine with a few hundred processes.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_inodes_and_groups_are_read() {
        let line = "   0: 0100007F:1F90 0200000A:0016 01 00000000:00000000 00:00000000 00000000  1000        0 \
                    34567 1 0000000000000000 100 0 0 10 0";
        assert_eq!(socket(line), Some((8080, 34_567)));
        assert_eq!(socket(&line.replace("34567", "0")), None);
        assert_eq!(socket("  sl  local_address rem_address"), None);
        assert_eq!((inode("socket:[34567]"), inode("pipe:[3]")), (Some(34_567), None));
        let text = "12:pids:/a\n0::/system.slice/backup.service\n";
        assert_eq!(group(text), "system.slice/backup.service");
    }

    #[test]
    fn names_and_groups_match_as_a_whole() {
        let owner = Owner {
            names: ["curl".to_owned(), "curl.bin".to_owned()],
            cgroup: "system.slice/backup.service".to_owned(),
        };
        let list = |text: &str| vec![text.to_owned()];
        assert!(owner.is_one_of(&[]) && owner.is_within(&[]));
        assert!(owner.is_one_of(&list("curl.bin")) && !owner.is_one_of(&list("cur")));
        assert!(owner.is_within(&list("/system.slice")) && !owner.is_within(&list("system.sli")));
    }

    #[test]
    fn this_process_is_found_by_its_socket() {
        let near = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let owner = read().remove(&(17, near.local_addr().unwrap().port())).unwrap();
        let comm = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(owner.names[0], comm.trim());
    }
}
