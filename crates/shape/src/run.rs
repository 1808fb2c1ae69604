//! A shaper from start to end.

use std::sync::mpsc;

use weir_core::Duration;
use weir_sockets::Clock;

use crate::control_socket::ControlSocket;
use crate::engine::{Engine, Order};
use crate::settings::Settings;
use crate::view::View;
use crate::{ShapeError, choose};

/// Command of the caller that is shown the views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Go on shaping.
    Continue,
    /// Let everything through.
    Open,
    /// Shape, with a controller that begins anew.
    Shape,
    /// End the shaper.
    Stop,
}

/// Shapes until `show`, a client of the control socket or the settings want an end. Returns how many
/// decisions were made.
///
/// `show` gets a view as JSON a few times a second. What was there before is there again on return.
///
/// # Errors
/// If the device cannot be shaped, or no longer: why.
pub fn run(
    settings: &Settings,
    seed: u64,
    show: &mut dyn FnMut(&str) -> Command,
) -> Result<u64, ShapeError> {
    let clock = Clock::starting_in(Duration::ZERO);
    run_with(settings, seed, clock, &mut |view| show(&json(view)))
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
    let choice = choose(settings)?;
    let control = ControlSocket::open(&settings.device)?;
    let engine = Engine::new(settings, &choice, seed, clock)?;
    let (order, orders) = mpsc::channel();
    let (sender, views) = mpsc::channel::<View>();
    // Packets do not wait for a terminal that does.
    let thread = std::thread::Builder::new()
        .name("shaper".to_owned())
        .spawn(move || engine.run(&orders, &sender))
        .map_err(|error| ShapeError::io("cannot start a thread", error))?;
    for view in views {
        control.show(json(&view));
        let wanted = match if control.wants_end() { Command::Stop } else { show(&view) } {
            Command::Continue => continue,
            Command::Open => Order::Open,
            Command::Shape => Order::Shape,
            Command::Stop => Order::Stop,
        };
        // A loop that has ended says why below.
        let _ = order.send(wanted);
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn json(view: &View) -> String {
    serde_json::to_string(view).expect("a view is plain JSON")
}
