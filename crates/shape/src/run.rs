//! A shaper from start to end.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use weir_core::Duration;
use weir_sockets::Clock;

use crate::control_socket::ControlSocket;
use crate::engine::{Engine, Order};
use crate::settings::Settings;
use crate::view::View;
use crate::{Choice, ShapeError, choose};

/// Command of the caller that is shown the views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Go on shaping.
    Continue,
    /// Let everything through, and suspend the controller.
    Open,
    /// Shape, with what the controller knows.
    Shape,
    /// End the shaper.
    Stop,
}

/// What a shaper leaves when it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How many decisions were made.
    pub decisions: u64,
    /// Why what was learned of the line could not be kept at the end, if it should have been.
    pub unkept: Option<String>,
}

/// Shapes until `show`, a client of the control socket or the settings want an end.
///
/// `show` gets a view as JSON a few times a second. What was there before is there again on return.
///
/// # Errors
/// If the device cannot be shaped, or no longer: why.
pub fn run(
    settings: &Settings,
    seed: u64,
    show: &mut dyn FnMut(&str) -> Command,
) -> Result<Ended, ShapeError> {
    settings.check()?;
    let clock = Clock::starting_in(Duration::ZERO);
    run_chosen(settings, &choose(settings)?, seed, clock, &mut |view| show(&json(view)))
}

/// Runs a shaper with the times of `clock`; `show` gets each view as a value, not as JSON.
///
/// # Errors
/// As of [`run`].
pub fn run_with(
    settings: &Settings,
    seed: u64,
    clock: Clock,
    show: &mut dyn FnMut(&View) -> Command,
) -> Result<u64, ShapeError> {
    settings.check()?;
    run_chosen(settings, &choose(settings)?, seed, clock, show).map(|ended| ended.decisions)
}

/// Runs a shaper as [`run_with`] does, with the backend that [`choose`] has found for these `settings`: the kernel
/// is not asked again what it can do, which takes it tens of milliseconds. Returns also what could not be kept.
///
/// # Errors
/// As of [`run`].
pub fn run_chosen(
    settings: &Settings,
    choice: &Choice,
    seed: u64,
    clock: Clock,
    show: &mut dyn FnMut(&View) -> Command,
) -> Result<Ended, ShapeError> {
    let control = ControlSocket::open(&settings.device)?;
    let mut settings = settings.clone();
    let beginning = settings.recall();
    let engine = Engine::new(settings, choice, seed, clock, beginning.trouble)?;
    let (order, orders) = mpsc::channel();
    let (sender, views) = mpsc::channel::<View>();
    let fail = |error| ShapeError::io("cannot start a thread", error);
    // Packets do not wait for a terminal that does.
    let thread = std::thread::Builder::new()
        .name("shaper".to_owned())
        .spawn(move || engine.run(&orders, &sender))
        .map_err(fail)?;
    // Neither does whoever asks at the control socket, which goes when the shaper has ended.
    let (shown, to_show) = mpsc::sync_channel(UNSHOWN);
    let stop = order.clone();
    let telling = std::thread::Builder::new()
        .name("views".to_owned())
        .spawn(move || tell(&views, control, &stop, &shown))
        .map_err(fail)?;
    for view in to_show {
        let wanted = match show(&view) {
            Command::Continue => continue,
            Command::Open => Order::Open,
            Command::Shape => Order::Shape,
            Command::Stop => Order::Stop,
        };
        // A loop that has ended says why below.
        let _ = order.send(wanted);
    }
    telling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Hands views on to the control socket, and to whoever shows them as long as that keeps up: until there are
/// no more.
fn tell(
    views: &Receiver<View>,
    control: ControlSocket,
    stop: &Sender<Order>,
    shown: &SyncSender<View>,
) {
    for view in views {
        control.show(json(&view));
        if control.wants_end() {
            // A loop that has ended already says why itself.
            let _ = stop.send(Order::Stop);
        }
        // A terminal that is halted misses the views of that time.
        let _ = shown.try_send(view);
    }
    drop(control);
}

fn json(view: &View) -> String {
    serde_json::to_string(view).expect("a view is plain JSON")
}

/// Views that wait to be shown at most, of 13 seconds: a pause of the terminal's loses none.
const UNSHOWN: usize = 64;
