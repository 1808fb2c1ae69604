//! `ingress`: policers in front of a queue.
//!
//! Linux' `net/sched/sch_ingress.c` queues nothing: it lets filters and their actions see what comes in. As a
//! hop's queue it stands in front of what sits beneath it, a `pfifo` where nothing is written.

use weir_core::{Packet, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, Qdisc, Stats};
use crate::fifo::default_leaf;
use crate::police::{Control, Police, police_words};
use crate::registry::Discipline;
use crate::tc::{Filter, QueueSpec, Record, SpecError, as_words, params, words};

struct Ingress {
    /// In the order in which they are asked, each with its policers.
    filters: Vec<(Filter, Vec<Police>)>,
    child: Box<dyn Qdisc>,
    refused: Accounting,
}

impl Ingress {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let mut written = spec.filters.clone();
        let options: IngressOptions = spec.read(device)?;
        if let Some(words) = options.police {
            written.push(Filter::of_all(vec![words], options.estimator.unwrap_or_default()));
        }
        written.sort_by_key(|filter| filter.priority);
        let mut filters = Vec::new();
        for filter in written {
            let estimator: Vec<&str> = filter.estimator.iter().map(String::as_str).collect();
            let read = |words: &Vec<String>| Police::read(words, &estimator, device);
            let police = filter.police.iter().map(read).collect::<Result<_, _>>()?;
            filters.push((filter, police));
        }
        let child = match &spec.child {
            Some(child) => child.build(device)?,
            None => default_leaf(device),
        };
        Ok(Self { filters, child, refused: Accounting::default() })
    }

    /// Whether `packet` passes.
    fn passes(&mut self, packet: &Packet, now: Time) -> bool {
        for (filter, police) in &mut self.filters {
            if !filter.holds(packet) {
                continue;
            }
            let mut control = Control::Ok;
            for policer in police {
                control = policer.judge(packet, now);
                if control != Control::Pipe {
                    break;
                }
            }
            match control {
                Control::Ok | Control::Pipe => return true,
                Control::Drop => return false,
                Control::Continue => {}
            }
        }
        true
    }
}

impl Qdisc for Ingress {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        if self.passes(packet, now) {
            self.child.enqueue(packet, now, sink);
        } else {
            self.refused.xmit_cn(*packet, DropReason::Policed, sink);
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.child.dequeue(now, sink)
    }

    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        self.child.peek(now, sink)
    }

    fn wake_at(&self) -> Option<Time> {
        self.child.wake_at()
    }

    fn may_wake_at(&self) -> Option<Time> {
        self.child.may_wake_at()
    }

    fn backlog(&self) -> Backlog {
        self.child.backlog()
    }

    fn stats(&self) -> Stats {
        let mut stats = self.child.stats();
        stats += self.refused.stats();
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        visit(ClassView { name: "1:1", backlog: self.child.backlog(), stats: self.child.stats() });
        self.child.classes(visit);
    }
}

params! {
    /// Parameters of `ingress`.
    struct IngressOptions {
        /// a policer for all packets
        police: Option<Vec<String>> = words(POLICE_SHAPE, police_words, as_words)
            .absent("by filters"),
        /// how `avrate` is measured
        estimator: Option<Vec<String>> = words("INTERVAL AVERAGE", |_| 2, as_words).absent("none"),
    }
}

const POLICE_SHAPE: &str = "rate RATE burst SIZE [mtu SIZE] [peakrate RATE] [avrate RATE] \
                            [conform-exceed EXCEED[/CONFORM]] ...";

pub(crate) static INGRESS: Discipline = Discipline {
    name: "ingress",
    summary: "policers in front of a queue: packets beyond a rate are dropped as they come in",
    source: "Linux net/sched/sch_ingress.c, act_police.c; iproute2 tc/m_police.c",
    params: IngressOptions::PARAMS,
    class_params: &[],
    takes_child: true,
    examples: &[
        "ingress police rate 2mbit burst 5k conform-exceed drop/pipe",
        "ingress police rate 1mbit burst 4k peakrate 3mbit mtu 1600 drop fq_codel limit 20",
        "ingress estimator 250ms 1s police avrate 500kbit conform-exceed drop tbf rate 1mbit burst 2k limit 9k",
        "qdisc add dev eth0 handle ffff: ingress
         qdisc add dev eth0 root handle 1: codel limit 20
         filter add dev eth0 parent ffff: protocol ip prio 2 matchall action police rate 1mbit burst 8k conform-exceed drop/ok
         filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dport 5000 0xffff action police rate 300kbit burst 3k conform-exceed continue/ok",
    ],
    build: |spec, device| Ok(Box::new(Ingress::new(spec, device)?)),
};
