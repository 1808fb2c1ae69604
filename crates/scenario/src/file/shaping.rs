//! Shapers as worlds take them.

use crate::{Host, Reflector, Shaper, ShaperProbe, Span, Trouble, TroubleKind};
use weir_core::Direction;
use weir_rate_control::{AutoSettings, Bounds, Control, Mode};

use crate::file::catalogue::Files;
use crate::file::link::LinkSpec;
use crate::file::quantity::ShaperRate;
use crate::file::shaper::{
    ControlWord, ModeWord, RatesSpec, ReflectorSpec, ShaperProbeWord, ShaperSpec, TroubleSpec,
};

/// The shaper over a link; its reflectors are the servers from number `first_host` on.
pub(crate) fn shaper(
    spec: &ShaperSpec,
    first_host: u32,
    link: &LinkSpec,
    files: &impl Files,
) -> Result<Shaper, String> {
    let probe = match spec.probe {
        _ if spec.control == ControlWord::Fixed => ShaperProbe::None,
        ShaperProbeWord::Icmp => ShaperProbe::Icmp,
        ShaperProbeWord::Udp => ShaperProbe::Udp,
        ShaperProbeWord::None => ShaperProbe::None,
    };
    let reflectors: &[ReflectorSpec] =
        if probe == ShaperProbe::None { &[] } else { &spec.reflectors.0 };
    Ok(Shaper {
        control: control(spec, link, files)?,
        probe,
        reflectors: (first_host..)
            .zip(reflectors)
            .map(|(host, one)| reflector(one, host))
            .collect(),
        passive: spec.passive,
        sleeps: spec
            .sleeps
            .iter()
            .map(|span| Span { from_ns: span.start.0, to_ns: span.stop.0 })
            .collect(),
    })
}

/// The servers that answer a shaper's probes.
pub(crate) fn reflector_hosts(spec: &ShaperSpec) -> Vec<Host> {
    let numbered = (1..).zip(&spec.reflectors.0);
    numbered
        .map(|(number, one)| Host {
            name: format!("reflector {number}"),
            delay_ns: one.delay.0,
            route: None,
        })
        .collect()
}

fn control(spec: &ShaperSpec, link: &LinkSpec, files: &impl Files) -> Result<Control, String> {
    let stays = |way| told(spec, way, spec.rates(way).rate.as_ref(), link, files);
    let known = |way| {
        let learned = spec.learned.as_ref().and_then(|learned| learned.capacity(way));
        told(spec, way, learned, link, files)
    };
    Ok(match spec.control {
        ControlWord::Auto => Control::Auto(AutoSettings {
            mode: match spec.mode {
                ModeWord::Ping => Mode::Ping,
                ModeWord::Bandwidth => Mode::Bandwidth,
            },
            egress_bps: stays(Direction::Up)?,
            ingress_bps: stays(Direction::Down)?,
            egress_max_bps: spec.up.max.map(|rate| rate.0),
            ingress_max_bps: spec.down.max.map(|rate| rate.0),
            egress_known_bps: known(Direction::Up)?,
            ingress_known_bps: known(Direction::Down)?,
        }),
        ControlWord::Fixed => {
            let fixed = |way: Direction| match stays(way)? {
                None if spec.shapes(way) => Err(format!(
                    "shaper `fixed`: `{}` has no `rate`: write one, such as 95%",
                    way.word()
                )),
                rate => Ok(rate),
            };
            Control::Fixed {
                egress_bps: fixed(Direction::Up)?,
                ingress_bps: fixed(Direction::Down)?,
            }
        }
        ControlWord::CakeAutorate => Control::CakeAutorate {
            egress: bounds("up", &spec.up)?,
            ingress: bounds("down", &spec.down)?,
        },
    })
}

/// A rate that the shaper is told of a direction, in bit/s, if it shapes that.
fn told(
    spec: &ShaperSpec,
    way: Direction,
    rate: Option<&ShaperRate>,
    link: &LinkSpec,
    files: &impl Files,
) -> Result<Option<u64>, String> {
    let Some(rate) = rate.filter(|_| spec.shapes(way)) else { return Ok(None) };
    let line = match rate {
        ShaperRate::Rate(_) => None,
        ShaperRate::Share(_) => link.mean_rate_bps(way, files)?,
    };
    match (rate.bps(line), rate) {
        (None, ShaperRate::Share(share)) => Err(format!(
            "shaper `{}`: `{}` {share} of a line without a rate",
            spec.control.word(),
            way.word()
        )),
        (bps, _) => Ok(bps),
    }
}

fn bounds(way: &str, rates: &RatesSpec) -> Result<Bounds, String> {
    match (rates.min, rates.base, rates.max) {
        (Some(min), Some(base), Some(max)) => {
            Ok(Bounds { min_bps: min.0, base_bps: base.0, max_bps: max.0 })
        }
        _ => Err(format!(
            "shaper `cake-autorate`: `{way}` needs `min`, `base` and `max`: 5mbit:20mbit:80mbit"
        )),
    }
}

fn reflector(reflector: &ReflectorSpec, host: u32) -> Reflector {
    Reflector {
        host,
        loss: reflector.loss.0,
        troubles: reflector.troubles.iter().map(trouble).collect(),
    }
}

fn trouble(trouble: &TroubleSpec) -> Trouble {
    let what = match (trouble.late, trouble.erratic, trouble.clock) {
        (Some(late), _, _) => TroubleKind::LateNs(late.0),
        (_, Some(erratic), _) => TroubleKind::ErraticNs(erratic.0),
        (_, _, Some(clock)) => TroubleKind::ClockNs(clock.0.cast_signed()),
        (None, None, None) => TroubleKind::Silent,
    };
    Trouble { during: Span { from_ns: trouble.start.0, to_ns: trouble.stop.0 }, what }
}
