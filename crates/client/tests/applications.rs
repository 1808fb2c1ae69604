//! Applications between this machine and a server on it.

mod common;

use common::{Rows, request, serve};
use weir_client::measure;
use weir_core::{Duration, Time};
use weir_scenario::{Application, Direction, DnsLoad, Flow, TransferRow, VideoLoad, WebLoad};

/// A page over one connection, which is secured.
const PAGE: WebLoad = WebLoad {
    document_bytes: 20_000,
    objects: 12,
    object_bytes: 10_000,
    connections: 1,
    http2: false,
    tls: true,
    dns: true,
    every_ns: 300_000_000,
    timeout_ns: 10_000_000_000,
};
/// Data of a fixed size, again and again.
const SHORT: WebLoad = WebLoad { objects: 0, tls: false, dns: false, every_ns: 20_000_000, ..PAGE };

fn flow(name: &str, application: Application) -> Flow {
    let span = (Time::from_millis(200), Time::from_millis(1_700));
    Flow { application: Some(application), ..Flow::new(name, Direction::Down, "cubic", span) }
}

fn names(every_ns: u64) -> Application {
    Application::Dns(DnsLoad { every_ns })
}

fn of(rows: &Rows, flow: u32) -> Vec<TransferRow> {
    rows.transfers.iter().filter(|row| row.flow == flow).copied().collect()
}

#[test]
fn pages_names_and_a_video_come_as_in_every_world() {
    let server = serve(&[]);
    let video = VideoLoad {
        bitrates_bps: vec![1_000_000, 8_000_000],
        segment_ns: 500_000_000,
        buffer_ns: 1_000_000_000,
    };
    let many = WebLoad { connections: 6, ..PAGE };
    let flows = vec![
        flow("page", Application::Web(PAGE)),
        flow("page over HTTP/2", Application::Web(WebLoad { http2: true, tls: false, ..PAGE })),
        flow("short flows", Application::Web(SHORT)),
        flow("names", names(10_000_000)),
        flow("film", Application::Video(video)),
        flow("page over six", Application::Web(many)),
    ];
    let request = request(&server, flows);
    let mut rows = Rows::default();
    assert!(measure(&request, &mut rows).unwrap().complete);
    assert_eq!(rows.notes["warnings"], serde_json::json!([]));
    assert!(rows.transfers.iter().all(|row| row.outcome != "given_up"));
    // By hand: the first flight of TLS; 22 bytes a record of 16 KiB; heads of 300 bytes, or of 129 with a frame of 9 a 16 KiB.
    let secured = 3_000 + (20_300 + 2 * 22) + 12 * (10_300 + 22);
    let plain_2 = (20_000 + 129 + 2 * 9) + 12 * (10_000 + 129 + 9);
    for (number, bytes, queries) in [(0, secured, 1), (1, plain_2, 1), (2, 20_300, 0), (3, 120, 1)]
    {
        let done: Vec<_> =
            of(&rows, number).into_iter().filter(|row| row.outcome == "done").collect();
        assert!(done.len() >= 3, "{number}: {}", done.len());
        for row in &done {
            assert_eq!((row.bytes, row.queries), (bytes, queries), "{number}");
            assert!(row.t >= Time::from_millis(200) && row.t < Time::from_millis(1_700));
            assert!(row.first_byte.unwrap() <= row.took);
            assert!(row.took < Duration::from_secs(5), "{number}: {:?}", row.took);
        }
    }
    assert!(of(&rows, 5).iter().any(|row| row.outcome == "done" && row.bytes >= secured));
    let segments = of(&rows, 4);
    let done: Vec<_> = segments.iter().filter(|row| row.outcome == "done").collect();
    assert_eq!(done[0].segment.unwrap().bitrate_bps, 1_000_000, "the least first");
    assert_eq!(done[1].segment.unwrap().bitrate_bps, 8_000_000, "loopback carries more");
    // Two are loaded ahead, then one whenever there is room for it: 1.5 s play three.
    assert!((3..=5).contains(&segments.len()), "{segments:?}");
    for (number, totals) in rows.flows.iter().enumerate() {
        let arrived = rows.throughput.iter().filter(|row| row.flow as usize == number);
        let (bytes, wire) =
            arrived.fold((0, 0), |(bytes, wire), row| (bytes + row.bytes, wire + row.wire_bytes));
        assert_eq!(bytes, totals.delivered_bytes, "{number}: rows add up");
        assert!(wire > bytes, "{number}: {wire}");
        // What was cut had bytes too. Those of a page are of its connections, those of a segment without the handshake.
        let own = of(&rows, number as u32);
        let told: u64 = own.iter().map(|row| row.bytes).sum();
        let more = match number {
            3 => 0,
            4 => 3_000,
            _ => 120 * own.iter().map(|row| row.queries).sum::<u64>(),
        };
        assert_eq!(bytes, told + more, "{number}");
        let first = totals.first_data.unwrap();
        assert!(first >= Time::from_millis(200) && first < Time::from_millis(1_700));
    }
}

#[test]
fn a_run_that_is_stopped_half_way_tells_what_was_cut() {
    let server = serve(&[]);
    let video = VideoLoad {
        bitrates_bps: vec![1_000_000_000_000],
        segment_ns: 10_000_000_000,
        buffer_ns: 20_000_000_000,
    };
    let request = request(&server, vec![flow("film", Application::Video(video))]);
    let mut rows = Rows { ends: Some(Time::from_millis(700)), ..Rows::default() };
    assert!(!measure(&request, &mut rows).unwrap().complete);
    let cut: Vec<_> =
        rows.transfers.iter().map(|row| (row.outcome, row.t < Time::from_millis(700))).collect();
    assert_eq!(cut, [("cut", true)]);
    assert!(rows.flows[0].delivered_bytes > 0);
}

#[test]
fn a_page_without_its_connections_is_given_up_and_told() {
    // The one is the session's.
    let server = serve(&["--max-connections-per-address", "1"]);
    let page = WebLoad { connections: 6, timeout_ns: 500_000_000, ..PAGE };
    let mut rows = Rows::default();
    let request = request(&server, vec![flow("page", Application::Web(page))]);
    assert!(measure(&request, &mut rows).unwrap().complete, "the run goes on");
    let ends: Vec<_> = rows.transfers.iter().map(|row| row.outcome).collect();
    assert_eq!(ends, ["given_up", "given_up", "cut"], "each waits for half of a second");
    let warned = rows.notes["warnings"][0].as_str().unwrap();
    assert!(warned.starts_with("`page` failed ") && warned.contains("connection: "), "{warned}");
    assert!(warned.contains("503"), "{warned}");
}

#[test]
fn what_the_server_does_not_allow_is_refused_before_anything_is_sent() {
    let server = serve(&["--max-echo-rate", "100"]);
    let refusal = |flows: Vec<Flow>| {
        measure(&request(&server, flows), &mut Rows::default()).unwrap_err().to_string()
    };
    let both = vec![flow("a", names(20_000_000)), flow("b", names(19_000_000))];
    assert_eq!(refusal(both), "103 UDP pings and names a second: this server answers 100");
}
