// A device with an app, which does what the test writes on standard input, one line of JSON for each
// call, and prints what comes of it. Pauses before retries last until the test ends them.
import Foundation

@testable import Pushsvc

struct Command: Decodable {
    let `do`: String
    var token: String?
    var id: String?
    var tags: [String]?
    var attributes: [String: PushValue]?
    var choices: [String: Bool?]?
    var payload: String?
    var event: PushEvent?
    var button: String?
    var url: String?
}

func say(_ what: [String: Any]) {
    let data = try! JSONSerialization.data(withJSONObject: what)
    FileHandle.standardOutput.write(data + Data("\n".utf8))
}

func described(_ error: PushError) -> [String: Any] {
    ["code": error.code.rawValue, "problem": error.problem?.code ?? "", "will_retry": error.willRetry]
}

actor Pauses {
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func pause(_ seconds: Double) async {
        await withCheckedContinuation {
            waiting.append($0)
            say(["pause": seconds])
        }
    }

    func end() {
        waiting.forEach { $0.resume() }
        waiting = []
    }
}

let environment = ProcessInfo.processInfo.environment
let pauses = Pauses()
let push = PushClient(
    URL(string: environment["SERVICE"]!)!, environment["CHANNEL"]!,
    FileStore(directory: URL(fileURLWithPath: environment["STORE"]!)), environment["LOCALE"] != nil,
    { say(["failed": described($0)]) }, sleep: { await pauses.pause($0) })

func message(_ text: String) -> PushMessage? {
    PushMessage(userInfo: try! JSONSerialization.jsonObject(with: Data(text.utf8)) as! [String: Any])
}

func run(_ command: Command) async throws -> Any {
    switch command.do {
    case "register":
        let digits = Array(command.token!)
        let bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }
        try await push.register(Data(bytes))
    case "login": try await push.login(command.id!, identityToken: command.token)
    case "logout": try await push.logout()
    case "add": try await push.addTags(command.tags!)
    case "remove": try await push.removeTags(command.tags!)
    case "attributes": try await push.setAttributes(command.attributes!)
    case "unsubscribe": try await push.unsubscribe()
    case "subscribe": try await push.subscribe()
    case "resume": await push.resume()
    case "wake": await pauses.end()
    case "preferences": return chosen(try await push.preferences())
    case "prefer": return chosen(try await push.setPreferences(command.choices!))
    case "join": try await push.joinAsTestDevice(command.id!)
    case "report":
        guard let message = message(command.payload!) else { return "foreign" }
        await push.reports.report(command.event!, of: message, button: command.button)
    case "link": return message(command.payload!)!.link(button: command.button)?.absoluteString ?? ""
    case "image": return await PushImage.download(URL(string: command.url!)!)?.path ?? ""
    case "state":
        return ["subscribed": try await push.isSubscribed, "id": try await push.subscriptionId ?? ""]
    default: fatalError(command.do)
    }
    return true
}

func chosen(_ categories: [PushCategory]) -> [String: Bool] {
    Dictionary(uniqueKeysWithValues: categories.map { ($0.key, $0.chosen) })
}

while let line = readLine() {
    let command = try! JSONDecoder().decode(Command.self, from: Data(line.utf8))
    do {
        say(["ok": try await run(command)])
    } catch let error as PushError {
        say(["error": described(error)])
    }
}
