//! The control socket of a lab: over it the lines are changed while a program runs.
//!
//! Whoever connects says one line, a JSON object of hops and their changes as link files have them, such as
//! `{"down/modem": {"rate": "5mbit", "delay": "40ms"}}`, and is answered with one: `{"t_ns": 3214000000}`, the time of
//! the run from which it holds, or `{"error": "...", "of": "order"}`, and then nothing has changed: `of` says whether
//! the order is wrong, or the `lab` cannot follow it. Who says nothing keeps nobody else from it, unless there are as
//! many of those as are heard at once.

use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration as WallDuration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;
use serde_json::json;
use weir_core::{Time, error_in_words};
use weir_linux::{LinuxError, line_from};
use weir_scenario::Scenario;
use weir_scenario::file::{HopChange, Written, read_ordered};
use weir_sockets::Clock;

use crate::keys_once::KeysOnce;

/// Changes that the data path is to make at once.
pub(crate) struct Order {
    /// The changes, which the scenario allows.
    pub changes: Vec<HopChange>,
    /// Is told from when on they hold.
    pub done: SyncSender<Time>,
}

/// The control socket at work, in a thread of its own.
pub(crate) struct ControlSocket {
    /// Closing it ends the thread.
    end: PipeWriter,
    thread: JoinHandle<()>,
    desk: Arc<Mutex<Desk>>,
    changed: Receiver<Scenario>,
}

impl ControlSocket {
    /// Takes orders that come to `listener` for the lines of `scenario` and hands them to the data path, which reads
    /// them from the other end of `orders`.
    ///
    /// # Errors
    /// If there is no pipe or thread to be had.
    pub fn start(
        listener: Arc<UnixListener>,
        scenario: &Scenario,
        clock: Clock,
        orders: Sender<Order>,
    ) -> Result<Self, LinuxError> {
        let fail = |error| LinuxError::io("cannot take orders at the control socket", error);
        let (ended, end) = io::pipe().map_err(fail)?;
        let (sender, changed) = channel();
        let desk =
            Desk { scenario: scenario.clone(), clock, orders: Some(orders), changed: sender };
        let desk = Arc::new(Mutex::new(desk));
        let serving = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                let busy = Arc::default();
                while someone_comes(&listener, &ended) {
                    // Without room, files or threads the client waits, and so does this.
                    if take_in(&listener, &serving, &busy).is_none() {
                        sleep(PAUSE);
                    }
                }
            })
            .map_err(fail)?;
        Ok(Self { end, thread, desk, changed })
    }

    /// The scenario with all that was changed so far, if that is more than when it was asked before.
    pub fn changed(&self) -> Option<Scenario> {
        self.changed.try_iter().last()
    }

    /// Takes no more orders. Returns the scenario as [`changed`](Self::changed) does.
    pub fn finish(self) -> Option<Scenario> {
        drop(self.end);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A client that is still heard comes too late.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner).orders = None;
        self.changed.try_iter().last()
    }
}

/// Waits for a client; false if the lab ends first.
fn someone_comes(listener: &UnixListener, ended: &PipeReader) -> bool {
    loop {
        let mut waited =
            [ended.as_fd(), listener.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut waited, PollTimeout::NONE) {
            Ok(_) => return waited[0].any() == Some(false),
            Err(nix::Error::EINTR) => {}
            Err(_) => return false,
        }
    }
}

/// Takes the client in who waits, and serves it beside the others; `busy` counts them.
fn take_in(
    listener: &UnixListener,
    desk: &Arc<Mutex<Desk>>,
    busy: &Arc<AtomicUsize>,
) -> Option<()> {
    if busy.load(Ordering::Relaxed) >= MAX_CLIENTS {
        return None;
    }
    let (client, _) = listener.accept().ok()?;
    busy.fetch_add(1, Ordering::Relaxed);
    let (desk, room) = (Arc::clone(desk), Arc::clone(busy));
    let thread = std::thread::Builder::new().name("client".to_owned()).spawn(move || {
        // Whoever is gone before the answer did not want it.
        let _ = serve(&client, &desk);
        room.fetch_sub(1, Ordering::Relaxed);
    });
    if thread.is_err() {
        busy.fetch_sub(1, Ordering::Relaxed);
    }
    thread.ok().map(drop)
}

/// Reads what `client` orders, has it done at the `desk`, and answers.
fn serve(mut client: &UnixStream, desk: &Mutex<Desk>) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let done = read_order(client)
        .and_then(|order| desk.lock().unwrap_or_else(PoisonError::into_inner).obey(&order));
    let answer = match done {
        Ok(at) => json!({ "t_ns": at.as_nanos() }),
        Err(Refusal::Order(why)) => json!({ "error": why, "of": "order" }),
        Err(Refusal::Lab(why)) => json!({ "error": why, "of": "lab" }),
    };
    // In one piece: many a client reads once.
    client.write_all(format!("{answer}\n").as_bytes())
}

/// The order of `client`.
fn read_order(client: &UnixStream) -> Result<Written, Refusal> {
    let lab = |why: &dyn fmt::Display| Refusal::Lab(why.to_string());
    let who = getsockopt(client, sockopt::PeerCredentials).map_err(|error| lab(&error))?;
    if who.uid() != geteuid().as_raw() {
        return Err(lab(&"only the user who started the lab may change its lines"));
    }
    let said =
        line_from(client, MAX_ORDER_BYTES, PATIENCE).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Refusal::Order(UNENDED.to_owned()),
            _ => lab(&format_args!("the order cannot be read: {}", error_in_words(&error))),
        })?;
    let said: KeysOnce = serde_json::from_str(&said).map_err(|error| {
        let what = if error.is_data() { "cannot be taken" } else { "is not JSON" };
        Refusal::Order(format!("the order {what}: {error}"))
    })?;
    Ok(Written::from(said.0))
}

/// Why nothing was changed, in a sentence.
enum Refusal {
    /// The order is wrong.
    Order(String),
    /// The lab does not follow it.
    Lab(String),
}

/// Where orders are carried out, one after the other.
struct Desk {
    /// The scenario with all changes so far.
    scenario: Scenario,
    clock: Clock,
    /// Where they go, until the lab ends.
    orders: Option<Sender<Order>>,
    changed: Sender<Scenario>,
}

impl Desk {
    /// Does what is `ordered`, and returns from when on it holds; or why nothing was changed.
    fn obey(&mut self, ordered: &Written) -> Result<Time, Refusal> {
        let changes = read_ordered(ordered, &self.scenario).map_err(Refusal::Order)?;
        let with_them = |at| {
            let changed = self.scenario.changed(&changes, at);
            changed.map_err(|error| Refusal::Order(error.to_string()))
        };
        with_them(self.clock.now())?;
        let ends = || Refusal::Lab("the lab is about to end: nothing was changed".to_owned());
        let at = self.have_done(&changes).ok_or_else(ends)?;
        self.scenario = with_them(at)?;
        // Nobody listens any more once the run has ended.
        let _ = self.changed.send(self.scenario.clone());
        Ok(at)
    }

    /// Has the data path make the changes: from when on they hold, or `None` if it does no more.
    fn have_done(&self, changes: &[HopChange]) -> Option<Time> {
        let (done, at) = sync_channel(1);
        self.orders.as_ref()?.send(Order { changes: changes.to_vec(), done }).ok()?;
        at.recv().ok()
    }
}

/// Between two attempts to take a client in.
const PAUSE: WallDuration = WallDuration::from_millis(100);
/// A client is not waited for longer than this.
const PATIENCE: WallDuration = WallDuration::from_secs(2);
/// Said to a client that did not end its line within that time.
const UNENDED: &str = "the order does not end: write one line of JSON, and its end, within 2 s";
/// Clients at once. Who comes then waits until one is done.
const MAX_CLIENTS: usize = 64;
/// Bytes of an order: that of a hop has a hundred.
const MAX_ORDER_BYTES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    use std::time::Instant;

    use serde_json::Value;
    use weir_core::Duration;
    use weir_scenario::{Change, Hop, LineChange, LineRate};

    use super::*;

    /// A desk for a line of 10 Mbit/s each way at an abstract address of that name, and its data path's orders.
    fn desk(name: &str) -> (ControlSocket, SocketAddr, Receiver<Order>) {
        let name = format!("weir-lab-test-{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let listener = Arc::new(UnixListener::bind_addr(&address).unwrap());
        let hop = || Hop::new("line", "pfifo", LineRate::Bps(10_000_000));
        let scenario = Scenario::over("t", 1_000_000_000, hop(), hop());
        let (sender, orders) = channel();
        let clock = Clock::starting_in(Duration::ZERO);
        (ControlSocket::start(listener, &scenario, clock, sender).unwrap(), address, orders)
    }

    fn say(address: &SocketAddr, what: &str) -> String {
        let mut stream = UnixStream::connect_addr(address).unwrap();
        stream.write_all(what.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn an_order_reaches_the_data_path_and_stands_in_the_scenario_at_its_time() {
        let (control, address, orders) = desk("order");
        let path = std::thread::spawn(move || {
            let order = orders.recv().unwrap();
            order.done.send(Time::from_millis(7)).unwrap();
            order.changes
        });
        let answer = say(&address, "{\"down/line\": {\"rate\": \"5mbit\"}}\n");
        assert_eq!(answer, "{\"t_ns\":7000000}\n");
        let to = LineChange::RateBps(5_000_000);
        assert_eq!(path.join().unwrap(), [HopChange { hop: 1, to }]);
        let scenario = control.finish().unwrap();
        assert_eq!(scenario.path.down[0].changes, [Change { at_ns: 7_000_000, to }]);
        assert_eq!(scenario.path.up[0].changes, []);
    }

    #[test]
    fn what_cannot_be_done_changes_nothing_and_the_next_is_served() {
        let (control, address, orders) = desk("refused");
        let refused = |what: &str| {
            let answer: Value = serde_json::from_str(&say(&address, what)).unwrap();
            answer["error"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            refused("{\"down/line\": {\"rate\": \"5\"}}\n"),
            "down/line: rate: `5` is a rate without its unit: write `5mbit` or `5kbit`"
        );
        assert!(refused("rate\n").starts_with("the order is not JSON: "));
        assert_eq!(
            refused(
                "{\"down/line\": {\"delay\": \"5ms\"}, \"down/line\": {\"rate\": \"5mbit\"}}\n"
            ),
            "the order cannot be taken: `down/line` is given twice: write it once at line 1 column 43"
        );
        assert!(orders.try_recv().is_err());
        drop(orders);
        assert_eq!(
            refused("{\"down/line\": {\"rate\": \"5mbit\"}}\n"),
            "the lab is about to end: nothing was changed"
        );
        assert_eq!(control.finish(), None);
    }

    #[test]
    fn who_says_nothing_keeps_nobody_else_from_ordering() {
        let (control, address, orders) = desk("silent");
        let path = std::thread::spawn(move || {
            for order in orders {
                order.done.send(Time::from_millis(7)).unwrap();
            }
        });
        // They come before it, and the last is served by the time of its answer.
        let silent: Vec<_> = (0..3).map(|_| UnixStream::connect_addr(&address).unwrap()).collect();
        let start = Instant::now();
        let answer = say(&address, "{\"down/line\": {\"rate\": \"5mbit\"}}\n");
        assert_eq!(answer, "{\"t_ns\":7000000}\n");
        assert!(start.elapsed() < PATIENCE, "it waited for the others");
        drop(silent);
        assert!(control.finish().is_some());
        path.join().unwrap();
    }
}
