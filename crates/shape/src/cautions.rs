//! What keeps a shaper from helping as things stand, before any packet is seen.

use weir_linux::{DeviceCounters, DeviceFacts};

use crate::ShapeError;
use crate::diagnostics::{DOWN, slower_link, taken_by, taken_by_hardware};
use crate::owners::owners_are_seen;
use crate::rules::Rules;
use crate::settings::{Backend, Settings};

/// Sentences of caution about a shaper of these settings, were it started now. Nothing is changed.
///
/// # Errors
/// If there is no such device, or the kernel does not tell what it is.
pub fn cautions(settings: &Settings, backend: Backend) -> Result<Vec<String>, ShapeError> {
    let state = DeviceCounters::new(&settings.device)?.state();
    let down = state.is_some_and(|it| !it.is_running).then(|| DOWN.to_owned());
    Ok(down.into_iter().chain(standing(settings, backend)?).collect())
}

/// Warnings that hold as long as the shaper is at work.
pub(crate) fn standing(settings: &Settings, backend: Backend) -> Result<Vec<String>, ShapeError> {
    let device = settings.device.as_str();
    let mut said = of_device(settings, &weir_linux::device_facts(device)?);
    if settings.rules.as_ref().is_some_and(Rules::ask_owner) && !owners_are_seen() {
        said.push(UNOWNED.to_owned());
    }
    let sees_all = backend == Backend::Kernel && settings.rules.is_none();
    let flowtables = weir_linux::flowtables(device)?;
    said.extend(flowtables.iter().filter_map(|it| taken_by(it, device, sees_all)));
    if weir_linux::filters_in_hardware(device) {
        said.push(taken_by_hardware(device));
    }
    Ok(said)
}

/// What the device itself is not fit for.
fn of_device(settings: &Settings, facts: &DeviceFacts) -> Vec<String> {
    let mut said =
        facts.speed_bps.map_or_else(Vec::new, |speed| slower_link(&settings.control, speed));
    if facts.hardware == nix::libc::ARPHRD_LOOPBACK {
        said.push(format!("`{}` {LOOPBACK}", settings.device));
    }
    if facts.wireless {
        said.push(RADIO.to_owned());
    }
    said
}

/// Said where no process can be seen.
const UNOWNED: &str = "rules by `program` or `cgroup` hold for nothing: there is no /proc here, which tells whose a packet is";
/// Said of every radio.
const RADIO: &str = "the device is a radio, whose rate changes with every packet: queues in its driver and at \
                     the access point are not seen here";
/// Said of a loopback device, by its name.
const LOOPBACK: &str = "is the loopback device: what crosses it goes from this machine to itself, and no line becomes \
                        faster by that; name the device that leads to the line";

#[cfg(test)]
mod tests {
    use weir_rate_control::Control;

    use super::*;
    use crate::log::tests::settings;

    #[test]
    fn a_device_is_told_of_that_is_slower_or_a_loopback_or_a_radio() {
        let settings = settings(Control::Fixed { egress_bps: Some(20_000_000), ingress_bps: None });
        let device = settings.device.as_str();
        let plain = DeviceFacts { hardware: nix::libc::ARPHRD_ETHER, ..DeviceFacts::default() };
        assert!(of_device(&settings, &plain).is_empty());
        let fast = DeviceFacts { speed_bps: Some(20_000_000), ..plain.clone() };
        assert!(of_device(&settings, &fast).is_empty());
        let slow = DeviceFacts { speed_bps: Some(10_000_000), ..plain.clone() };
        assert_eq!(
            of_device(&settings, &slow),
            ["up: 20.0 Mbit/s is above the speed of the device itself, 10.0 Mbit/s"]
        );
        let loopback = DeviceFacts { hardware: nix::libc::ARPHRD_LOOPBACK, ..plain.clone() };
        assert_eq!(of_device(&settings, &loopback), [format!("`{device}` {LOOPBACK}")]);
        let radio = DeviceFacts { wireless: true, ..plain };
        assert_eq!(of_device(&settings, &radio), [RADIO]);
    }
}
