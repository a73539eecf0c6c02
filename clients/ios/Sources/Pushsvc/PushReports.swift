import Foundation

public enum PushEvent: String, Codable, Sendable {
    /// The notification was shown.
    case received
    case clicked
    case dismissed
}

/// Reports what happened to notifications. Reports are stored until the service has them.
public actor PushReports {
    private struct Report: Codable, Equatable {
        let token: String
        let event: PushEvent
        let action: String?
        let at: Date

        func isSame(_ other: Report) -> Bool { token == other.token && event == other.event }
    }

    private static let inOneCall = 20
    private static let most = 500
    private static let oldest: TimeInterval = 28 * 24 * 3600 // the service counts no older ones

    private let service: Service
    private var kept: Kept<[Report]>
    private var retries: Retries
    private var queue = Queue()

    public init(service: URL, store: any PushStore, timeout: Double = 10) {
        self.init(service, store, timeout, sleep: nil)
    }

    init(_ service: URL, _ store: any PushStore, _ timeout: Double = 10, sleep: Sleep?) {
        self.service = Service(address: service, channel: nil, timeout: timeout)
        kept = Kept(store, "reports")
        retries = Retries(sleep)
    }

    /// Returns after the first attempt. `button`: the id of the button that was clicked.
    public func report(_ event: PushEvent, of message: PushMessage, button: String? = nil) async {
        let report = Report(token: message.token, event: event, action: button, at: Date())
        let known = waiting()
        // If it cannot be stored, it is still sent.
        if !known.contains(where: report.isSame) { try? kept.write(Array((known + [report]).suffix(Self.most))) }
        await send()
    }

    /// Sends what is left. Call it when the app becomes active.
    public func send() async {
        try? await queue.run { await self.sendAlone() }.value
    }

    private func retry() async {
        retries.begin()
        await send()
    }

    private func sendAlone() async {
        while !retries.isHeldBack {
            let batch = Array(waiting().prefix(Self.inOneCall))
            if batch.isEmpty { return retries.succeeded() }
            do {
                try await service.post("events", .object(["events": .list(batch.map(json))]))
            } catch let error as PushError where error.willRetry {
                return retries.failed(error) { [weak self] in await self?.retry() }
            } catch {
                // Refused for good, which no repetition changes.
            }
            try? kept.write(waiting().filter { !batch.contains($0) })
        }
    }

    private func waiting() -> [Report] {
        let reports = (try? kept.read { [] }) ?? []
        return reports.filter { $0.at.timeIntervalSinceNow > -Self.oldest }
    }

    private func json(_ report: Report) -> JSON {
        var fields: [String: JSON] = ["token": .text(report.token), "event": .text(report.event.rawValue)]
        if let action = report.action { fields["action"] = .text(action) }
        return .object(fields)
    }
}
