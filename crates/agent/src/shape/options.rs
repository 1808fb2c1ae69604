//! Options of `weir-agent shape`, which are those of `weir shape`.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;
use weir_core::error_in_words;
use weir_scenario::file::{Value as Written, Written as Entry};
use weir_shape::{Settings, read_config, read_settings};

use crate::failure::Failure;
use crate::once::Once;
use crate::shape::HELP;
use crate::shape::prove::ProofOptions;
use crate::words::{text, unexpected, value};

/// How a shaper is started.
#[derive(Default)]
pub(crate) struct Start {
    device: String,
    config: Option<PathBuf>,
    /// Settings of the command line, by their names in files.
    given: Vec<(String, Entry)>,
    reflectors: Vec<Entry>,
    log: Option<PathBuf>,
    pub dry_run: bool,
    pub quiet: bool,
    /// Measures first whether it helps.
    pub prove: bool,
    pub proof: ProofOptions,
}

impl Start {
    /// Reads the command line; `None` if it asks for help.
    pub fn parse(words: Vec<OsString>) -> Result<Option<Self>, Failure> {
        let mut start = Self::default();
        let (mut proves, mut of_proof) = (false, None);
        let mut parser = lexopt::Parser::from_args(words);
        let mut once = Once::default();
        while let Some(word) = parser.next()? {
            if let Long(name) = word
                && !REPEATED.contains(&name)
            {
                once.see(name)?;
            }
            match word {
                Long("help") | Short('h') => return Ok(None),
                Long("config") => start.config = Some(value(&mut parser, "config")?.into()),
                Long("log") => start.log = Some(value(&mut parser, "log")?.into()),
                Long("dry-run") => start.dry_run = true,
                Long("quiet") => start.quiet = true,
                Long("reflector") => {
                    start.reflectors.push(text(&mut parser, "reflector")?.into());
                }
                Long("prove") => proves = true,
                Long(name @ ("server" | "rounds" | "load" | "max-cost")) => {
                    let name = name.to_owned();
                    start.proof.set(&name, text(&mut parser, &name)?)?;
                    of_proof = of_proof.or(Some(format!("--{name}")));
                }
                Long("json") => {
                    start.proof.json = true;
                    of_proof = of_proof.or(Some("--json".to_owned()));
                }
                Long("run") => {
                    return Err(Failure::usage(
                        "--run is no option of this program: run the command beside `--prove`, which measures the line's own \
                         traffic where no --server is named",
                    ));
                }
                Long(name) => {
                    let Some(key) = IN_FILES.iter().find(|key| key.replace('_', "-") == name)
                    else {
                        return Err(unexpected(Long(name), HELP));
                    };
                    let name = name.to_owned();
                    start.given.push(((*key).to_owned(), text(&mut parser, &name)?.into()));
                }
                Value(name) if start.device.is_empty() => start.device = name.string()?,
                other => return Err(unexpected(other, HELP)),
            }
        }
        if start.device.is_empty() {
            return Err(Failure::usage("say which device to shape: `weir-agent shape IFACE`"));
        }
        if let Some(option) = of_proof.filter(|_| !proves) {
            return Err(Failure::usage(format!(
                "{option} goes with --prove: give that too, or leave it out"
            )));
        }
        start.prove = proves;
        Ok(Some(start))
    }

    /// The settings that these words and the file make together. The server of a proof was found already.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let mut given = Entry::empty();
        for (key, value) in &self.given {
            given.set(key, value.clone());
        }
        let reflectors = self.reflectors()?;
        if !reflectors.is_empty() {
            given.set("reflectors", Entry::of(Written::List(reflectors)));
        }
        let mut settings = read_settings(&self.device, self.config.as_deref(), given)?;
        settings.open = self.prove;
        settings.log = match &self.log {
            None => None,
            Some(file) => Some(std::path::absolute(file).map_err(|error| {
                Failure::usage(format!("log `{}`: {}", file.display(), error_in_words(&error)))
            })?),
        };
        Ok(settings)
    }

    /// Whom the command line says to probe: the server of a proof, unless somebody else is named here or in the file.
    fn reflectors(&self) -> Result<Vec<Entry>, Failure> {
        let Some(server) = self.proof.server.as_ref().filter(|_| self.reflectors.is_empty()) else {
            return Ok(self.reflectors.clone());
        };
        let in_file = self.config.as_deref().map(read_config).transpose()?;
        let is_named = in_file.is_some_and(|file| file.get("reflectors").is_some());
        Ok(if is_named { Vec::new() } else { vec![format!("udp:{server}").into()] })
    }
}

/// Options that may be given more than once: there are several reflectors, and saying a thing again changes nothing.
const REPEATED: &[&str] = &["reflector", "dry-run", "quiet", "prove", "json"];

/// Settings of one value that are options too, with a dash where a file has `_`.
const IN_FILES: &[&str] = &[
    "up",
    "down",
    "up_max",
    "down_max",
    "mode",
    "queue_up",
    "queue_down",
    "framing",
    "auth",
    "backend",
    "rules",
    "state",
    "time",
];

#[cfg(test)]
mod tests {
    use weir_rate_control::Control;
    use weir_shape::Target;

    use super::*;

    fn read(words: &str) -> Result<Settings, Failure> {
        let words = words.split(' ').map(OsString::from).collect();
        Start::parse(words).and_then(|start| start.expect("no help").settings())
    }

    fn refused(words: &str) -> (String, u8) {
        read(words).map_or_else(|failure| (failure.message, failure.code), |_| panic!("{words}"))
    }

    #[test]
    fn words_become_settings() {
        let words = "nosuch0 --up 8mbit --down-max=50mbit --mode bandwidth --reflector 10.0.0.1 --reflector udp:[fd00::1]";
        let settings = read(words).unwrap_or_else(|failure| panic!("{}", failure.message));
        let Control::Auto(auto) = settings.control else { panic!("{:?}", settings.control) };
        assert_eq!((auto.egress_bps, auto.ingress_max_bps), (Some(8_000_000), Some(50_000_000)));
        assert_eq!(settings.reflectors.len(), 2);
    }

    #[test]
    fn the_server_of_a_proof_is_probed_unless_somebody_else_is_named() {
        let probed =
            |words| read(words).unwrap_or_else(|failure| panic!("{}", failure.message)).reflectors;
        let server = "nosuch0 --prove --server 192.0.2.1:8081";
        assert_eq!(probed(server), [Target::Udp(([192, 0, 2, 1], 8081).into())]);
        assert_eq!(
            probed(&format!("{server} --reflector 192.0.2.2")),
            [Target::Icmp([192, 0, 2, 2].into())]
        );
        assert!(read(server).is_ok_and(|settings| settings.open));
        assert!(read("nosuch0").is_ok_and(|settings| !settings.open));
    }

    #[test]
    fn wrong_words_are_refused_in_a_sentence_with_code_2() {
        for (words, said) in [
            ("--up 8mbit", "say which device to shape: `weir-agent shape IFACE`"),
            ("eth0 --up 20", "shape: up: `20` is a rate without its unit: write `20mbit`"),
            ("eth0 --time 5ms", "shape: time: `5ms`: write 1s or more"),
            ("eth0 --colour red", "`--colour` is no option; `--help` lists all"),
            ("eth0 --quite", "`--quite` is no option, did you mean `--quiet`? `--help` lists all"),
            ("eth0 -q", "`-q` is no option; `--help` lists all"),
            ("eth0 --log --quiet", "`--log` lacks its value, since `--quiet` follows it"),
            ("eth0 --up", "`--up` lacks its value: write it after the option"),
            ("eth0 --up 8mbit --up 9mbit", "--up is given twice: write it once"),
            ("eth0 --log=a --log b", "--log is given twice: write it once"),
            ("eth0 eth1", "`eth1` is a word too many; `--help` says what may be written"),
            ("eth0 --rounds 2", "--rounds goes with --prove: give that too, or leave it out"),
            ("eth0 --prove --rounds 21", "rounds `21`: write a whole number from 1 to 20"),
            ("eth0 --prove --load 500ms", "load 500ms: write 1s or more"),
            ("eth0 --prove --load 90000s", "load 90000s: write 86400s or less"),
            (
                "eth0 --prove --max-cost 1.1",
                "max-cost: `1.1` is not a share: write a number from 0 to 1, such as 0.1",
            ),
            ("eth0 --config /", "config `/` cannot be read: it is a folder, and no regular file"),
        ] {
            assert_eq!(refused(words), (said.to_owned(), 2));
        }
    }
}
