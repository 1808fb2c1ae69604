//! `weir-agent shape IFACE --prove`: a shaper that is measured first, and goes on only if it helps.

use weir_scenario::file::Written;
use weir_scenario::file::quantity::read_time;
use weir_shape::{Command, Proof, Prover, ProverSettings, Settings, View};
use weir_sockets::Target;

use crate::failure::Failure;
use crate::shape::display::Display;
#[cfg(feature = "test")]
use crate::shape::load::Load;
use crate::terminal::{print, tell};

/// How a shaper is to be proved, as the command line says it.
#[derive(Debug)]
pub(crate) struct ProofOptions {
    /// The `weir serve` that loads the line; the user's own traffic does if `None`.
    pub server: Option<String>,
    pub json: bool,
    rounds: usize,
    measure_ns: u64,
    max_cost: f64,
}

impl Default for ProofOptions {
    fn default() -> Self {
        Self { server: None, json: false, rounds: 3, measure_ns: 5_000_000_000, max_cost: 0.1 }
    }
}

impl ProofOptions {
    /// Takes the value of the option `--NAME`.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), Failure> {
        match name {
            "server" => self.server = Some(value),
            "rounds" => {
                self.rounds =
                    value.parse().ok().filter(|rounds| (1..=20).contains(rounds)).ok_or_else(
                        || {
                            Failure::usage(format!(
                                "rounds `{value}`: write a whole number from 1 to 20"
                            ))
                        },
                    )?;
            }
            "load" => {
                let read = read_time(&Written::from(value.as_str()));
                self.measure_ns = read.map_err(|says| Failure::usage(format!("load: {says}")))?;
                match self.measure_ns {
                    0..1_000_000_000 => {
                        return Err(Failure::usage(format!("load {value}: write 1s or more")));
                    }
                    1_000_000_000..=MAX_MEASURE_NS => {}
                    _ => return Err(Failure::usage(format!("load {value}: write 86400s or less"))),
                }
            }
            _ => {
                let share = value.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                self.max_cost = share.ok_or_else(|| {
                    Failure::usage(format!(
                        "{name}: `{value}` is not a share: write a number from 0 to 1, such as 0.1"
                    ))
                })?;
            }
        }
        Ok(())
    }

    /// Looks the server's name up. Called before the settings are read: it is probed too, and where its name is not
    /// known it is told of as the server that it is.
    pub fn find_server(&self) -> Result<Option<Target>, Failure> {
        let Some(server) = &self.server else { return Ok(None) };
        #[cfg(feature = "test")]
        return Load::find(server).map(Some);
        #[cfg(not(feature = "test"))]
        Err(Failure::usage(format!(
            "--server {server}: this program was built without `test`, and cannot load a line"
        )))
    }

    /// Refuses a proof that could not come to its end, before anything is changed. `server` is the one that was found.
    pub fn check(&self, server: Option<&Target>, settings: &Settings) -> Result<(), Failure> {
        self.prover().fits(settings.time_ns).map_err(Failure::usage)?;
        #[cfg(feature = "test")]
        if let Some(server) = server {
            Load::check(server, settings)?;
        }
        #[cfg(not(feature = "test"))]
        assert!(server.is_none(), "it was refused where it was to be looked up");
        Ok(())
    }

    fn prover(&self) -> Prover {
        Prover::new(ProverSettings {
            rounds: self.rounds,
            measure_ns: self.measure_ns,
            max_cost: self.max_cost,
            own_traffic: self.server.is_none(),
            takes_commands: false,
        })
    }
}

/// Leads a shaper by a prover, and lets it go on after that.
pub(crate) struct Proving {
    prover: Prover,
    #[cfg(feature = "test")]
    load: Option<Load>,
    json: bool,
    /// The proof, or why there is none; `None` until the measurement is complete.
    result: Option<Result<Proof, String>>,
}

impl Proving {
    /// Begins with the load, if there is to be one.
    pub fn begin(options: &ProofOptions, settings: &Settings) -> Result<Self, Failure> {
        let prover = options.prover();
        tell(&prover.plan());
        #[cfg(feature = "test")]
        let load =
            options.server.as_ref().map(|server| Load::begin(server, settings)).transpose()?;
        #[cfg(not(feature = "test"))]
        let _ = settings;
        Ok(Self {
            prover,
            #[cfg(feature = "test")]
            load,
            json: options.json,
            result: None,
        })
    }

    /// The order to the shaper after this view.
    pub fn step(&mut self, view: &View, display: &mut Display) -> Command {
        if self.result.is_some() {
            return Command::Continue;
        }
        let wanted = self.prover.step(view);
        let failure = self.load_failure();
        if !self.prover.has_ended() && failure.is_none() {
            return wanted;
        }
        let result = failure.map_or_else(|| self.prover.proof(), Err);
        display.close();
        let shown = self.show(&result);
        let helps = result.as_ref().is_ok_and(|proof| proof.verdict.is_none());
        self.result = Some(shown.map_err(|unshown| unshown.message).and(result));
        if !helps {
            return Command::Stop;
        }
        tell(&format!("{} is shaped from now on; end it with Ctrl-C", view.device));
        Command::Shape
    }

    /// Ends the load where it is no longer wanted, and says why it ended by itself where it did.
    fn load_failure(&mut self) -> Option<String> {
        #[cfg(feature = "test")]
        if let Some(load) = &mut self.load {
            let failure = load.failure();
            if self.prover.is_past_load() {
                load.end();
            }
            return failure;
        }
        None
    }

    fn show(&self, result: &Result<Proof, String>) -> Result<(), Failure> {
        if self.json {
            let said = match result {
                Ok(proof) => serde_json::to_value(proof),
                Err(why) => Ok(serde_json::json!({ "verdict": why })),
            };
            let said = said.map_err(|error| Failure::other(error.to_string()))?;
            return print(&format!("{said:#}\n"));
        }
        let Ok(proof) = result else { return Ok(()) };
        print(&(proof.lines().join("\n") + "\n"))?;
        if let Some(remark) = proof.remark() {
            tell(&remark);
        }
        Ok(())
    }

    /// Refuses what is no proof that the shaper helps.
    pub fn end(self) -> Result<(), Failure> {
        let why = match self.result {
            None => "it was ended before the measurement was complete; everything is as it was"
                .to_owned(),
            Some(Err(why)) => {
                format!("nothing could be proved, and everything is as it was: {why}")
            }
            Some(Ok(Proof { verdict: Some(verdict), .. })) => {
                format!("everything is as it was: {verdict}")
            }
            Some(Ok(_)) => return Ok(()),
        };
        Err(Failure::other(why))
    }
}

/// How long a stage is measured at most: a day.
const MAX_MEASURE_NS: u64 = 86_400_000_000_000;
