//! The control socket of a lab: over it the lines are changed while a program runs.
//!
//! Whoever connects says one line, a JSON object of hops and their changes as link files have them, such as
//! `{"down/modem": {"rate": "5mbit", "delay": "40ms"}}`, and is answered with one: `{"t_ns": 3214000000}`, the time of
//! the run from which it holds, or `{"error": "..."}`, and then nothing has changed.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{JoinHandle, sleep};
use std::time::Duration as WallDuration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;
use serde_json::{Value, json};
use weir_core::Time;
use weir_linux::{LinuxError, line_from};
use weir_scenario::Scenario;
use weir_scenario::file::{HopChange, Written, read_ordered};
use weir_sockets::Clock;

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
        let mut desk = Desk { scenario: scenario.clone(), clock, orders, changed: sender };
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                while someone_comes(&listener, &ended) {
                    match listener.accept() {
                        // Whoever is gone before the answer did not want it.
                        Ok((client, _)) => drop(desk.serve(&client)),
                        // No more files can be opened: the client waits, and so does this.
                        Err(_) => sleep(PAUSE),
                    }
                }
            })
            .map_err(fail)?;
        Ok(Self { end, thread, changed })
    }

    /// The scenario with all that was changed so far, if that is more than when it was asked before.
    pub fn changed(&self) -> Option<Scenario> {
        self.changed.try_iter().last()
    }

    /// Takes no more orders. Returns the scenario as [`changed`](Self::changed) does.
    pub fn finish(self) -> Option<Scenario> {
        drop(self.end);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
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

/// Serves one client after the other.
struct Desk {
    /// The scenario with all changes so far.
    scenario: Scenario,
    clock: Clock,
    orders: Sender<Order>,
    changed: Sender<Scenario>,
}

impl Desk {
    fn serve(&mut self, mut client: &UnixStream) -> io::Result<()> {
        client.set_write_timeout(Some(PATIENCE))?;
        let answer = match self.obey(client) {
            Ok(at) => json!({ "t_ns": at.as_nanos() }),
            Err(why) => json!({ "error": why }),
        };
        // In one piece: many a client reads once.
        client.write_all(format!("{answer}\n").as_bytes())
    }

    /// Does what `client` orders, and returns from when on it holds; or why nothing was changed.
    fn obey(&mut self, client: &UnixStream) -> Result<Time, String> {
        let who =
            getsockopt(client, sockopt::PeerCredentials).map_err(|error| error.to_string())?;
        if who.uid() != geteuid().as_raw() {
            return Err("only the user who started the lab may change its lines".to_owned());
        }
        let said = line_from(client, MAX_ORDER_BYTES, PATIENCE)
            .map_err(|error| format!("the order cannot be read: {error}"))?;
        let said: Value = serde_json::from_str(&said)
            .map_err(|error| format!("the order is not JSON: {error}"))?;
        let changes = read_ordered(&Written::from(said), &self.scenario)?;
        let with_them = |at| self.scenario.changed(&changes, at).map_err(|error| error.to_string());
        with_them(self.clock.now())?;
        let at = self.have_done(&changes).ok_or("the lab is about to end: nothing was changed")?;
        self.scenario = with_them(at)?;
        // Nobody listens any more once the run has ended.
        let _ = self.changed.send(self.scenario.clone());
        Ok(at)
    }

    /// Has the data path make the changes: from when on they hold, or `None` if it does no more.
    fn have_done(&self, changes: &[HopChange]) -> Option<Time> {
        let (done, at) = sync_channel(1);
        self.orders.send(Order { changes: changes.to_vec(), done }).ok()?;
        at.recv().ok()
    }
}

/// Between two attempts to take a client in.
const PAUSE: WallDuration = WallDuration::from_millis(100);
/// A client is not waited for longer than this.
const PATIENCE: WallDuration = WallDuration::from_secs(2);
/// Bytes of an order: that of a hop has a hundred.
const MAX_ORDER_BYTES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;

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
            "down/line: rate: `5` is a rate without its unit: write `5mbit`, `5kbit` or `5bit`"
        );
        assert!(refused("rate\n").starts_with("the order is not JSON: "));
        assert!(orders.try_recv().is_err());
        drop(orders);
        assert_eq!(
            refused("{\"down/line\": {\"rate\": \"5mbit\"}}\n"),
            "the lab is about to end: nothing was changed"
        );
        assert_eq!(control.finish(), None);
    }
}
