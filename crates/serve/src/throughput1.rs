//! M-Lab's throughput1 (msak).

use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use weir_speedtest::protocol::EndAddresses;
use weir_speedtest::protocol::throughput1::{self, Bytes, Measurement, Options};
use weir_speedtest::protocol::weir::Direction;

use crate::connection::{OverTcp, congestion};
use crate::data;
use crate::head::{path, query};
use crate::http::{Client, HttpRequest, HttpResponse, refuse, wrong};
use crate::ndt7::kernel_words;
use crate::service::{OverHttp, Own, Rules, Service};
use crate::stream_test::{Limit, Plan, State, run};
use crate::upgrade::websocket;

pub(crate) const SERVICE: Service = Service::Own(&Own {
    name: "msak",
    summary: "throughput1 of M-Lab's msak",
    http: Some(OverHttp {
        serves: |path| matches!(path, throughput1::DOWNLOAD | throughput1::UPLOAD),
        answer: |client, request| Box::pin(async move { answer(&client, request) }),
        rules: Rules::TEST,
    }),
});

/// Begins a stream in the direction that the path says.
fn answer(client: &Arc<Client>, mut request: HttpRequest) -> HttpResponse {
    let uploads = path(&request) == throughput1::UPLOAD;
    let direction = if uploads { Direction::Up } else { Direction::Down };
    let options = match Options::parse(query(&request)) {
        Ok(options) => options,
        Err(error) => return wrong(&error),
    };
    let (response, upgrade) = match websocket(&mut request, throughput1::SUBPROTOCOL) {
        Ok(both) => both,
        Err(response) => return *response,
    };
    let test = match client.server.begin("msak", direction.word(), client.ends.client) {
        Ok(test) => test,
        Err(refusal) => return refuse(refusal),
    };
    let client = Arc::clone(client);
    let tasks = client.server.tasks.clone();
    tasks.spawn(async move {
        let Some((transport, begun)) = upgrade.complete().await else { return };
        if let Some(wanted) = &options.congestion {
            // One that this machine does not have is passed over, as msak's server does: the first
            // measurement names the one that is used.
            let _ = SockRef::from(&**transport.socket()).set_tcp_congestion(wanted.as_bytes());
        }
        let used = congestion(transport.socket());
        let plan = plan(direction, &options, client.server.options.max_duration);
        let stop = client.server.stop.clone();
        tokio::select! {
            bytes = run(transport, &begun, plan, narrator(client.ends, used)) => test.passed(bytes),
            () = stop.cancelled() => {}
        }
    });
    response
}

fn plan(direction: Direction, options: &Options, longest: Duration) -> Plan {
    Plan {
        direction,
        duration: Duration::from_nanos(options.duration_ns).min(longest),
        longest: Duration::from_nanos(throughput1::MAX_STREAM_NS) + FAREWELL,
        sizes: throughput1::message_size(),
        // The same bound as for messages that are sent.
        longest_message: data::MAX_CHUNK_BYTES as u64,
        every: throughput1::MEASUREMENTS,
        limit: options.bytes.map_or(Limit::None, Limit::Bytes),
        pings: false,
    }
}

/// Puts measurements into throughput1's words.
fn narrator(ends: EndAddresses, used: Option<String>) -> impl FnMut(&State) -> String + Send {
    let mut first = Some(Measurement {
        congestion: used,
        uuid: Some(format!("weir_{:016x}", data::random())),
        local: Some(ends.server.to_string()),
        remote: Some(ends.client.to_string()),
        ..Measurement::default()
    });
    move |state| {
        let elapsed_time = state.elapsed.as_micros() as u64;
        let (_, received) =
            state.tcp.as_ref().map_or((0, 0), weir_sockets::TcpInfo::delivered_bytes);
        let (sent, _) = state.tcp.as_ref().map_or((0, 0), weir_sockets::TcpInfo::sent_bytes);
        let measurement = Measurement {
            application: Bytes { bytes_sent: state.sent, bytes_received: state.received },
            network: Bytes { bytes_sent: sent, bytes_received: received },
            elapsed_time,
            tcp_info: state.tcp.as_ref().map(|info| kernel_words(info, elapsed_time)),
            ..first.take().unwrap_or_default()
        };
        serde_json::to_string(&measurement).expect("it has no maps with keys that are not text")
    }
}

/// Time that the closing of the connection may take.
const FAREWELL: Duration = Duration::from_secs(5);
