// A dumbbell in htsim: flows of Reno without SACK, an acknowledgement for every segment, one drop-tail queue.
//
//     htsim FLOWS MBIT RTT_MS BUFFER_PACKETS SECONDS
//
// prints how many data packets left the queue, and the processor time of the loop of events in seconds.
#include <cstdio>
#include <ctime>
#include <iostream>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

struct CountingQueue : Queue {
    using Queue::Queue;
    unsigned long left = 0;
    void completeService() override {
        left++;
        Queue::completeService();
    }
};

double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main(int count, char **words) {
    if (count != 6) {
        fprintf(stderr, "htsim: write FLOWS MBIT RTT_MS BUFFER_PACKETS SECONDS\n");
        return 2;
    }
    const int flows = atoi(words[1]), buffer = atoi(words[4]);
    const double mbit = atof(words[2]), rtt_ms = atof(words[3]);
    const int ample_packets = 100000, segment = 1500, initial_window = 10 * segment;

    // What it says of every timeout would be counted as its work.
    std::cout.setstate(std::ios_base::failbit);
    EventList events;
    events.setEndtime(timeFromSec(atof(words[5])));
    Packet::set_packet_size(segment);
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    CountingQueue data(speedFromMbps(mbit), memFromPkt(buffer), events, nullptr);
    CountingQueue acks(speedFromMbps(mbit), memFromPkt(ample_packets), events, nullptr);
    Pipe there(timeFromMs(rtt_ms / 2), events), back(timeFromMs(rtt_ms / 2), events);
    for (int flow = 0; flow < flows; flow++) {
        auto *sender = new TcpSrc(nullptr, nullptr, events);
        auto *receiver = new TcpSink();
        auto *access = new Queue(speedFromMbps(10 * mbit), memFromPkt(ample_packets), events, nullptr);
        auto *out = new route_t(), *in = new route_t();
        for (PacketSink *hop : {static_cast<PacketSink *>(access), static_cast<PacketSink *>(&data),
                                static_cast<PacketSink *>(&there), static_cast<PacketSink *>(receiver)})
            out->push_back(hop);
        for (PacketSink *hop : {static_cast<PacketSink *>(&acks), static_cast<PacketSink *>(&back),
                                static_cast<PacketSink *>(sender)})
            in->push_back(hop);
        sender->set_cwnd(initial_window);
        sender->set_ssthresh(0xffffffff);
        sender->connect(*out, *in, *receiver, timeFromMs(drand() * 50));
        timers.registerTcp(*sender);
    }
    const double began = processor_seconds();
    while (events.doNextEvent()) {
    }
    printf("%lu %.6f\n", data.left, processor_seconds() - began);
    // Its destructors would take longer than the run, and free nothing that the end of the process does not.
    fflush(stdout);
    _exit(0);
}
