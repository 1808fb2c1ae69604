//! The choice of the backend that holds packets back, with its reason.

use weir_linux::{
    HandOver, Intercept, KernelQueue, KernelShaper, device_facts, find_device, kernel_has,
};
use weir_rate_control::Side;
use weir_scenario::file::shape::USUAL_QUEUES;
use weir_sockets::Clock;

use crate::gso::KeepGso;
use crate::kernel::Kernel;
use crate::rules::Rules;
use crate::settings::{Backend, Settings};
use crate::shaper::Shaper;
use crate::userspace::Userspace;
use crate::{ShapeError, control_socket};

/// A backend and the reason for it.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The backend.
    pub backend: Backend,
    /// Why this one, in one sentence.
    pub why: String,
    /// Disciplines that hold packets back, egress and ingress, in tc syntax; `None` for a side left alone.
    pub queues: [Option<String>; 2],
    /// Queues for the kernel to make, egress and ingress, if the kernel is the backend.
    kernel: [Option<KernelQueue>; 2],
    /// How the kernel hands packets over, if userspace is the backend.
    hand_over: Option<HandOver>,
}

impl Choice {
    /// Begins to hold packets back.
    pub(crate) fn shaper(
        &self,
        settings: &Settings,
        seed: u64,
        clock: Clock,
    ) -> Result<Box<dyn Shaper>, ShapeError> {
        // Whichever backend an earlier shaper had that was killed. A kernel without nf_tables has no tables.
        KernelShaper::heal(&settings.device)?;
        let healed = Intercept::heal(&settings.device);
        Ok(match self.backend {
            Backend::Kernel => Box::new(Kernel::new(settings, &self.kernel)?),
            Backend::Userspace => {
                healed?;
                let how = self.hand_over.expect("found where this backend was chosen");
                Box::new(Userspace::new(settings, how, seed, clock)?)
            }
        })
    }
}

/// Chooses the best available backend, or the one that was asked for. Nothing is changed.
///
/// The kernel's own queues cost the least, if they are what was asked for, or four tiers of `fq_codel` where
/// nothing was.
///
/// # Errors
/// If none is possible, or the one that was asked for is not: why.
pub fn choose(settings: &Settings) -> Result<Choice, ShapeError> {
    control_socket::check_free(&settings.device)?;
    let device = settings.device.as_str();
    if find_device(device)?.is_none() {
        return Err(control_socket::no_device(device));
    }
    if settings.backend == Some(Backend::Userspace) {
        let how = hands_over(settings)?;
        let why = format!("it was asked for, and this kernel hands packets over ({})", how.kind());
        return Ok(userspace(settings, how, why));
    }
    let asked = settings.backend.is_some();
    match kernel(settings, asked) {
        Ok(mut choice) => {
            if asked {
                choice.why = format!("it was asked for, and {}", choice.why);
            }
            Ok(choice)
        }
        Err(why) if asked => {
            let refused = format!("the backend `kernel` cannot be used: {why}");
            Err(if why.is_input() { ShapeError::input(refused) } else { ShapeError::new(refused) })
        }
        Err(why) => match hands_over(settings) {
            Ok(how) => Ok(userspace(
                settings,
                how,
                format!(
                    "this kernel hands packets over ({}), and the backend `kernel` cannot be used: {why}",
                    how.kind()
                ),
            )),
            Err(neither) => {
                let refused =
                    format!("no backend can be used: `userspace`: {neither}; `kernel`: {why}");
                Err(if neither.is_input() {
                    ShapeError::input(refused)
                } else {
                    ShapeError::new(refused)
                })
            }
        },
    }
}

/// How the kernel would hand packets over.
fn hands_over(settings: &Settings) -> Result<HandOver, ShapeError> {
    settings.check_queues()?;
    seen_by_ip(&settings.device)?;
    let [out, into] = Side::ALL.map(|side| KeepGso::of(settings, side));
    let ways = [out?, into?].map(|way| way.as_ref().map(KeepGso::writes));
    Ok(Intercept::check(&settings.device, ways)?)
}

/// Refuses a port of a bridge, whose packets come to no table of IP.
fn seen_by_ip(device: &str) -> Result<(), ShapeError> {
    match device_facts(device)?.port_of {
        None => Ok(()),
        Some(master) => Err(ShapeError::input(format!(
            "`{device}` is a port of `{master}`, which takes its packets before they could be held back: shape \
             `{master}`, or `{device}` by `--backend kernel` without rules"
        ))),
    }
}

fn userspace(settings: &Settings, how: HandOver, why: String) -> Choice {
    let queues = settings.queues.clone();
    Choice { backend: Backend::Userspace, why, queues, kernel: [None, None], hand_over: Some(how) }
}

/// The kernel's own disciplines, `any` of them or only those that keep queues short by themselves.
fn kernel(settings: &Settings, any: bool) -> Result<Choice, ShapeError> {
    let mut kernel = [None, None];
    let mut queues = [None, None];
    let mut instead = None;
    for side in Side::ALL {
        let Some(text) = &settings.queues[side as usize] else { continue };
        let mut text = text.as_str();
        let capped = settings.rules.as_ref().is_some_and(|rules| rules.has_caps(side));
        if text == USUAL_QUEUES[side as usize] && (capped || !kernel_has("cake")?) {
            if !kernel_has("fq_codel")? {
                return Err(ShapeError::new(match capped {
                    true => {
                        "rules set greatest rates, which `cake` has none of, and this kernel has no `fq_codel`"
                    }
                    false => "this kernel has neither `cake` nor `fq_codel`",
                }));
            }
            text = INSTEAD;
            let why = if capped { "has no greatest rates of classes" } else { "it does not have" };
            instead = instead.or(Some(why));
        }
        let queue = KernelQueue::new(text).map_err(|why| ShapeError::input(why.to_string()))?;
        if !any && !queue.needs().iter().any(|name| KEEP_SHORT.contains(name)) {
            return Err(ShapeError::new(format!(
                "`{text}` keeps no queue short by itself: `--backend kernel` takes it all the same"
            )));
        }
        queues[side as usize] = Some(text.to_owned());
        kernel[side as usize] = Some(queue);
    }
    let classes = settings.rules.as_ref().map(Rules::for_kernel);
    if classes.is_some() {
        seen_by_ip(&settings.device)?;
    }
    KernelShaper::check(&settings.device, &kernel, settings.framing, classes.as_ref())?;
    let names: Vec<_> = kernel.iter().flatten().map(ToString::to_string).collect();
    let mut why = match &names[..] {
        [one, other] if one != other => format!("this kernel has {one}, and {other}"),
        _ => format!("this kernel has {}", names[0]),
    };
    if let Some(because) = instead {
        why += &format!(
            ", and not `cake`, which {because}: flows share the rate fairly and hosts do not, as they do with \
             `--backend userspace`"
        );
    }
    Ok(Choice { backend: Backend::Kernel, why, queues, kernel, hand_over: None })
}

/// Discipline in place of the usual `cake`, for a kernel without it.
const INSTEAD: &str = "htb diffserv4 fq_codel";
/// Disciplines that keep queues short and flows apart.
const KEEP_SHORT: [&str; 2] = ["cake", "fq_codel"];
