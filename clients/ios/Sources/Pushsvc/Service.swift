import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The service's HTTP interface for devices.
struct Service: Sendable {
    let address: URL
    let channel: String?
    let timeout: Double

    private static let session: URLSession = {
        let settings = URLSessionConfiguration.ephemeral
        settings.httpAdditionalHeaders = ["User-Agent": "pushsvc-ios/\(PushClient.version)"]
        return URLSession(configuration: settings)
    }()

    /// The body of the response. Throws only `PushError`.
    @discardableResult
    func post(_ path: String, _ body: JSON) async throws -> Data {
        var request = URLRequest(url: address.appendingPathComponent(path), timeoutInterval: timeout)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let channel { request.setValue(channel, forHTTPHeaderField: "X-Channel-ID") }
        let answer: (body: Data, response: URLResponse)
        do {
            request.httpBody = try JSONEncoder().encode(body)
            answer = try await Self.session.data(for: request)
        } catch {
            throw PushError(.unreachable, willRetry: true)
        }
        guard let response = answer.response as? HTTPURLResponse else {
            throw PushError(.unreachable, willRetry: true)
        }
        if (200..<300).contains(response.statusCode) { return answer.body }
        throw refusal(response, answer.body)
    }

    /// The body of the response, decoded. A response of something else, such as the sign-in page of
    /// a wireless network, counts as none.
    func post<Answer: Decodable>(_ path: String, _ body: JSON, as _: Answer.Type) async throws -> Answer {
        let data = try await post(path, body)
        guard let answer = try? JSONDecoder().decode(Answer.self, from: data) else {
            throw PushError(.unreachable, willRetry: true)
        }
        return answer
    }

    private func refusal(_ response: HTTPURLResponse, _ body: Data) -> PushError {
        let status = response.statusCode
        let retryAfter = response.value(forHTTPHeaderField: "Retry-After").flatMap(Double.init)
        let problem =
            (try? JSONDecoder().decode(Problem.self, from: body))
            ?? Problem(status: status, code: "", detail: nil, errors: nil)
        let isTemporary = status >= 500 || [408, 429].contains(status) || (status == 409 && retryAfter != nil)
        return PushError(
            isTemporary ? .unreachable : .refused, problem: problem, willRetry: isTemporary, retryAfter: retryAfter)
    }
}

/// A JSON value of a request.
enum JSON: Encodable, Sendable {
    case null
    case text(String)
    case number(Double)
    case flag(Bool)
    case list([JSON])
    case object([String: JSON])

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .text(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .flag(let value): try container.encode(value)
        case .list(let values): try container.encode(values)
        case .object(let fields): try container.encode(fields)
        }
    }

    static func texts(_ texts: some Sequence<String>) -> JSON { .list(texts.sorted().map(JSON.text)) }
}
