//! Routes of a link and the servers that are reached by them: what they become, and what is refused.

use weir_scenario::file::catalogue::read_file;
use weir_scenario::file::spec::ScenarioSpec;
use weir_scenario::file::{Files, NoFiles, parse, resolve};
use weir_scenario::{Direction, Scenario};

/// A test of two servers, of which one is reached by `near`.
const TEST: &str = "
[test]
name = 't'
title = 't'
phases = { load = '1s' }
hosts = [
    { name = 'server' },
    { name = 'close', route = 'near' },
]
";

/// A link with three hops up, of which the second has a processor, and one down.
const LINK: &str = "
[link]
name = 'l'
title = 'l'

[[link.up]]
name = 'a'
[[link.up]]
name = 'b'
packet_rate = 1000
[[link.up]]
name = 'c'
[[link.down]]
name = 'back'
";

fn read(text: &str) -> Result<ScenarioSpec, String> {
    read_file(text, "s.toml")
}

fn run(text: &str) -> Scenario {
    let resolved = resolve(&read(text).unwrap(), &NoFiles, |_| None).unwrap();
    resolved.configurations.into_iter().next().unwrap().scenario
}

#[test]
fn a_route_is_the_numbers_of_its_hops_each_with_its_processor() {
    let scenario = run(&format!("{TEST}{LINK}[link.routes.near]\nup = ['c', 'b']\ndown = []\n"));
    let names: Vec<_> = scenario.path.up.iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!(names, ["a", "b-cpu", "b", "c"]);
    assert_eq!((&scenario.routes[0].up, &scenario.routes[0].down), (&vec![3, 1, 2], &vec![]));
    assert_eq!(scenario.hosts[0].route, None);
    assert_eq!(scenario.hosts[1].route, Some(0));
    assert_eq!(scenario.hops_to(0, Direction::Up), [0, 1, 2, 3]);
    assert_eq!(scenario.counted_hops_to(1, Direction::Up), 2);
}

#[test]
fn a_direction_of_which_a_route_says_nothing_has_all_hops() {
    let scenario = run(&format!("{TEST}{LINK}[link.routes.near]\nup = ['c']\n"));
    assert_eq!((&scenario.routes[0].up, &scenario.routes[0].down), (&vec![3], &vec![0]));
}

#[test]
fn a_shaper_stands_at_the_clients_end_of_every_route() {
    let shaper =
        "shaper = [{ control = 'fixed', up = { rate = '5mbit' }, down = { rate = '5mbit' } }]\n";
    let routes = "[link.routes.near]\nup = ['c']\ndown = []\n";
    let scenario = run(&format!("{shaper}{TEST}{LINK}{routes}"));
    let names = |direction| {
        let hops = scenario.hops(direction);
        let names = scenario.hops_to(1, direction).into_iter().map(|hop| hops[hop].name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(Direction::Up), ["shaper", "c"]);
    assert_eq!(names(Direction::Down), ["shaper"]);
    // Whoever writes a resolved scenario may not leave it out.
    let mut past = scenario;
    past.routes[0].up.remove(0);
    assert_eq!(
        past.check().unwrap_err().to_string(),
        "route `near` up: it goes past the shaper's hop `shaper`: write hop 0 on every route"
    );
}

#[test]
fn names_that_are_not_there_are_told_with_their_lines() {
    let told = |routes: &str| read(&format!("{TEST}{LINK}{routes}")).unwrap_err();
    let cases = [
        (
            "[link.routes.near]\nup = ['a',\n 'd']",
            "line 26: link.routes.near.up.1: unknown hop up `d` (known: a, b, c)",
        ),
        (
            "[link.routes.near]\ndown = ['a']",
            "line 25: link.routes.near.down.0: unknown hop down `a` (known: back)",
        ),
        (
            "[link.routes.near]\nup = ['a', 'b', 'a']",
            "line 25: link.routes.near.up.2: hop `a` stands twice on the route: write each once",
        ),
        (
            "[link.routes.far]\nup = ['a']",
            "line 8: test.hosts.1.route: host `close`: link `l` has no route `near` (known: far)",
        ),
        (
            "",
            "line 8: test.hosts.1.route: host `close`: link `l` has no route `near` (known: it has none)",
        ),
        (
            "[link.routes.near]\nup = ['a']\n[link.routes.far]\nup = []",
            "line 26: link.routes.far: link `l`: no server of the test has route `far`: write `route = \"far\"` at one, \
             or leave the route out",
        ),
        (
            "[link.routes.near]\nupp = ['a']",
            "line 25: link.routes.near.upp: unknown key, did you mean `up`?",
        ),
        (
            "[link.routes.near]\nup = 'a'",
            "line 25: link.routes.near.up: `a`: write a list: put brackets around it",
        ),
    ];
    for (routes, said) in cases {
        let found = told(routes);
        assert!(found.contains(said), "{routes}: {found}");
    }
}

/// A link in a file.
struct LinkFile(String);

impl Files for LinkFile {
    fn is_file(&self, name: &str) -> bool {
        name == "l.toml"
    }
    fn named_in(&self, _: &str, name: &str) -> Result<String, String> {
        Ok(name.to_owned())
    }
    fn read(&self, _: &str) -> Result<String, String> {
        Ok(self.0.clone())
    }
    fn trace_rate_bps(&self, _: &str) -> Result<u64, String> {
        unreachable!("it has none")
    }
}

#[test]
fn routes_of_a_link_in_a_file_of_its_own_are_looked_up_where_there_are_files() {
    let scenario = format!("link = 'l.toml'\n{TEST}");
    let spec = read(&scenario).unwrap();
    let link = |routes: &str| {
        LinkFile(format!("{}{routes}", LINK.replace("[link]", "").replace("link.", "")))
    };
    let refused = |files: &LinkFile| resolve(&spec, files, |_| None).unwrap_err();
    let says = "host `close`: link `l` has no route `near` (known: it has none)";
    assert_eq!(refused(&link("")), says);
    let faults = weir_scenario::file::faults_of_files(&spec, &parse(&scenario).unwrap(), &link(""));
    assert_eq!((faults.len(), faults[0].line, faults[0].says.as_str()), (1, Some(9), says));
    assert!(resolve(&spec, &link("[routes.near]\nup = []\n"), |_| None).is_ok());
    let unused = link("[routes.near]\nup = []\n[routes.far]\nup = []\n");
    assert!(refused(&unused).starts_with("link `l`: no server of the test has route `far`"));
}

#[test]
fn a_test_beside_another_uses_a_server_of_the_same_route_only() {
    let beside = |route: &str| {
        format!(
            "[[beside]]\ntest = {{ name = 'u', title = 'u', phases = {{ load = '1s' }}, hosts = [{{ name = 'server'{route} }}], \
             flows = [{{ name = 'f', direction = 'up' }}] }}\n"
        )
    };
    let routes = "[link.routes.near]\nup = []\n";
    let hosts = |route: &str| {
        let scenario = run(&format!("{TEST}{LINK}{routes}{}", beside(route)));
        let name = |host: &weir_scenario::Host| (host.name.clone(), host.route);
        (scenario.hosts.iter().map(name).collect::<Vec<_>>(), scenario.flows[0].host)
    };
    let known = vec![("server".to_owned(), None), ("close".to_owned(), Some(0))];
    assert_eq!(hosts(""), (known.clone(), 0));
    let another = [known, vec![("u server".to_owned(), Some(0))]].concat();
    assert_eq!(hosts(", route = 'near'"), (another, 2));
}
