//! M-Lab's ndt7.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use socket2::SockRef;
use weir_sockets::TcpInfo;
use weir_speedtest::protocol::ndt7::{self, AppInfo, ConnectionInfo, Measurement, Options};
use weir_speedtest::protocol::weir::Direction;
use weir_speedtest::protocol::{Query, kernel};

use crate::connection::OverTcp;
use crate::data;
use crate::head::{path, query};
use crate::http::{Client, HttpRequest, HttpResponse, refuse, wrong};
use crate::service::{OverHttp, Own, Rules, Service};
use crate::stream_test::{Limit, Plan, State, run};
use crate::upgrade::websocket;

pub(crate) const SERVICE: Service = Service::Own(&Own {
    name: "ndt7",
    summary: "ndt7",
    http: Some(OverHttp {
        serves: |path| matches!(path, ndt7::DOWNLOAD | ndt7::UPLOAD),
        answer: |client, request| Box::pin(async move { answer(&client, request) }),
        rules: Rules::TEST,
    }),
});

/// Begins a test in the direction that the path says.
fn answer(client: &Arc<Client>, mut request: HttpRequest) -> HttpResponse {
    let uploads = path(&request) == ndt7::UPLOAD;
    let direction = if uploads { Direction::Up } else { Direction::Down };
    let parameters: Query<'_> = query(&request);
    let options = match Options::parse(parameters) {
        Ok(options) => options,
        Err(error) => return wrong(&error),
    };
    let (response, upgrade) = match websocket(&mut request, ndt7::SUBPROTOCOL) {
        Ok(both) => both,
        Err(response) => return *response,
    };
    let test = match client.server.begin("ndt7", direction.word(), client.ends.client) {
        Ok(test) => test,
        Err(refusal) => return refuse(refusal),
    };
    let client = Arc::clone(client);
    let tasks = client.server.tasks.clone();
    tasks.spawn(async move {
        let Some((transport, begun)) = upgrade.complete().await else { return };
        if client.server.congestion.iter().any(|name| name == "bbr") {
            // As M-Lab's server does. What the socket has otherwise is the machine's default.
            let _ = SockRef::from(&**transport.socket()).set_tcp_congestion(b"bbr");
        }
        let stop = client.server.stop.clone();
        let plan = plan(direction, options, client.server.options.max_duration);
        let ends = client.ends;
        let narrate = narrator(direction, ends.client, ends.server);
        tokio::select! {
            bytes = run(transport, &begun, plan, narrate) => test.passed(bytes),
            () = stop.cancelled() => {}
        }
    });
    response
}

fn plan(direction: Direction, options: Options, longest: Duration) -> Plan {
    Plan {
        direction,
        duration: Duration::from_nanos(ndt7::DURATION_NS).min(longest),
        longest: Duration::from_nanos(ndt7::MAX_TEST_NS),
        sizes: ndt7::message_size(),
        longest_message: ndt7::MAX_MESSAGE_BYTES,
        every: ndt7::MEASUREMENTS,
        limit: options.early_exit_bytes.map_or(Limit::None, Limit::Acknowledged),
        pings: true,
    }
}

/// Puts measurements into ndt7's words.
fn narrator(
    direction: Direction,
    client: std::net::SocketAddr,
    server: std::net::SocketAddr,
) -> impl FnMut(&State) -> String + Send {
    let uuid = format!("weir_{:016x}", data::random());
    move |state| {
        let elapsed_time = state.elapsed.as_micros() as u64;
        let num_bytes = match direction {
            Direction::Down => state.sent,
            Direction::Up => state.received,
        };
        let measurement = Measurement {
            app_info: AppInfo { elapsed_time, num_bytes },
            connection_info: ConnectionInfo { client, server, uuid: uuid.clone() },
            origin: "server",
            test: direction.transfer(),
            tcp_info: state.tcp.as_ref().map(|info| kernel_words(info, elapsed_time)),
        };
        serde_json::to_string(&measurement).expect("it has no maps with keys that are not text")
    }
}

/// `TCP_INFO` as M-Lab's protocols have it.
pub(crate) fn kernel_words(info: &TcpInfo, elapsed_us: u64) -> Map<String, Value> {
    let mut words = kernel::tcp_info(info.bytes());
    words.insert("ElapsedTime".to_owned(), elapsed_us.into());
    words
}
