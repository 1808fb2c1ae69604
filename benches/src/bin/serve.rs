//! How much the server carries: `make bench-serve`.
//!
//! * `ratio`: one ndt7 download over loopback beside one iperf3 stream, in turn, several times;
//! * `load`: 200 tests at once.
//!
//! The server is `weir-agent`, a process of its own, as iperf3's is. Everything shares this machine, so only
//! the ratio means something.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => ratio().and_then(|()| load()),
        ["ratio"] => ratio(),
        ["load"] => load(),
        _ => Err("name one of ratio, load, or nothing for both".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("serve: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A server that ends with this.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Result<Self, String> {
        let program = env::current_exe().map_err(words)?.with_file_name("weir-agent");
        let mut process = Command::new(&program)
            .args(["serve", "--listen", "127.0.0.1:0", "--without", "irtt", "--json"])
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let mut lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let told: serde_json::Value = serde_json::from_str(&line).ok()?;
            Some(told["address"].as_str()?.to_owned())
        });
        // The log goes on, and somebody has to read it.
        thread::spawn(move || lines.for_each(drop));
        let address = address.ok_or("the server does not start")?;
        Ok(Self { process, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It holds nothing that has to be written.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ratio() -> Result<(), String> {
    let server = Server::start()?;
    println!("One stream over loopback, {SECONDS} s each, in turn (Gbit/s)\n");
    println!("{:>8} {:>8} {:>8}", "iperf3", "ndt7", "ratio");
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (other, ours) = (iperf3()?, ndt7(&server.address)?);
        println!("{:8.2} {:8.2} {:8.2}", other / 1e9, ours / 1e9, ours / other);
        ratios.push(ours / other);
    }
    ratios.sort_by(f64::total_cmp);
    println!("\nmedian ratio {:.2}: at least 0.5 is wanted", ratios[ROUNDS / 2]);
    Ok(())
}

/// Bits a second of one iperf3 stream.
fn iperf3() -> Result<f64, String> {
    // A port that is free now; nobody else takes ports of loopback at such a rate.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(words)?
        .port()
        .to_string();
    let missing = |error| format!("iperf3: {error}: apt-get install iperf3");
    let mut server = Command::new("iperf3")
        .args(["-s", "-1", "-B", "127.0.0.1", "-p", &port])
        .stdout(Stdio::null())
        .spawn()
        .map_err(missing)?;
    thread::sleep(Duration::from_millis(500));
    let seconds = SECONDS.to_string();
    let client = Command::new("iperf3")
        .args(["-c", "127.0.0.1", "-p", &port, "-t", &seconds, "-J"])
        .output()
        .map_err(missing)?;
    server.wait().map_err(words)?;
    let told: serde_json::Value = serde_json::from_slice(&client.stdout).map_err(words)?;
    told["end"]["sum_received"]["bits_per_second"].as_f64().ok_or("iperf3 gives no result".into())
}

/// Bits a second of an ndt7 download, read as iperf3 reads: all that comes, in large pieces.
fn ndt7(address: &str) -> Result<f64, String> {
    let mut stream = upgrade(address, "/ndt/v7/download")?;
    let mut buffer = vec![0; 128 << 10];
    let start = Instant::now();
    let mut bytes = 0;
    while start.elapsed() < Duration::from_secs(SECONDS) {
        match stream.read(&mut buffer).map_err(words)? {
            0 => return Err("the server ended the test too early".into()),
            read => bytes += read,
        }
    }
    Ok(bytes as f64 * 8.0 / start.elapsed().as_secs_f64())
}

fn load() -> Result<(), String> {
    let server = Server::start()?;
    println!(
        "\n{TESTS} tests at once: ndt7 in both directions, requests of 5 MB in both directions"
    );
    let start = Instant::now();
    let threads: Vec<_> = (0..TESTS)
        .map(|number| {
            let address = server.address.clone();
            thread::spawn(move || one_test(number, &address))
        })
        .collect();
    let results: Vec<_> = threads.into_iter().map(|one| one.join().expect("no panic")).collect();
    let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let bytes: usize = results.iter().flatten().sum();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} done, {} errors, {:.1} GB in {seconds:.1} s",
        results.len() - errors.len(),
        errors.len(),
        bytes as f64 / 1e9
    );
    errors.first().map_or(Ok(()), |error| Err((*error).clone()))
}

/// Does one test to its end and returns its bytes. Tests come from fifty addresses, since one has a bound.
fn one_test(number: usize, address: &str) -> Result<usize, String> {
    let mut stream = connect_from(number % 50, address)?;
    let mut buffer = vec![0; 64 << 10];
    match number % 4 {
        0 => {
            stream = upgrade_on(stream, "/ndt/v7/download")?;
            read_to_end(&mut stream, &mut buffer)
        }
        1 => {
            stream = upgrade_on(stream, "/ndt/v7/upload")?;
            let mut frame = vec![0x82, 0xff, 0, 0, 0, 0, 0, 0, 0x80, 0, 1, 2, 3, 4];
            frame.resize(frame.len() + 0x8000, 7);
            let (start, mut sent) = (Instant::now(), 0);
            while start.elapsed() < Duration::from_secs(9) {
                stream.write_all(&frame).map_err(words)?;
                sent += frame.len();
            }
            stream.shutdown(Shutdown::Write).map_err(words)?;
            read_to_end(&mut stream, &mut buffer)?;
            Ok(sent)
        }
        2 => {
            ask(&mut stream, &format!("GET /__down?bytes={REQUEST} HTTP/1.1"), b"")?;
            read_to_end(&mut stream, &mut buffer).and_then(|read| {
                if read > REQUEST { Ok(read) } else { Err(format!("{read} bytes of {REQUEST}")) }
            })
        }
        _ => {
            ask(&mut stream, "POST /__up HTTP/1.1", &vec![b'0'; REQUEST])?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map_err(words)?;
            if answer.starts_with("HTTP/1.1 200") { Ok(REQUEST) } else { Err(answer) }
        }
    }
}

fn connect_from(number: usize, address: &str) -> Result<TcpStream, String> {
    let source: SocketAddr = ([127, 0, 1, number as u8 + 1], 0).into();
    let target: SocketAddr = address.parse().map_err(words)?;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).map_err(words)?;
    socket.bind(&source.into()).and_then(|()| socket.connect(&target.into())).map_err(words)?;
    Ok(socket.into())
}

fn ask(stream: &mut TcpStream, line: &str, body: &[u8]) -> Result<(), String> {
    let length = body.len();
    let head =
        format!("{line}\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).map_err(words)
}

fn upgrade(address: &str, path: &str) -> Result<TcpStream, String> {
    upgrade_on(TcpStream::connect(address).map_err(words)?, path)
}

fn upgrade_on(mut stream: TcpStream, path: &str) -> Result<TcpStream, String> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(words)?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).map_err(words)?;
        head.push(byte[0]);
    }
    if head.starts_with(b"HTTP/1.1 101") {
        Ok(stream)
    } else {
        Err(String::from_utf8_lossy(&head).into_owned())
    }
}

fn read_to_end(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<usize, String> {
    let mut bytes = 0;
    loop {
        match stream.read(buffer).map_err(words)? {
            0 => return Ok(bytes),
            read => bytes += read,
        }
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

const SECONDS: u64 = 5;
const ROUNDS: usize = 5;
const TESTS: usize = 200;
const REQUEST: usize = 5_000_000;
