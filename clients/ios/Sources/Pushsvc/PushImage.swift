import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The image of a notification, as a file that iOS can attach.
public enum PushImage {
    private static let most = 10 * 1024 * 1024 // Apple's limit for an attached image
    private static let types = ["image/jpeg": "jpg", "image/png": "png", "image/gif": "gif"]

    /// A new file with the image, or nil if it cannot be downloaded or attached.
    public static func download(_ url: URL) async -> URL? {
        let request = URLRequest(url: url, timeoutInterval: 20)
        return await withCheckedContinuation { continuation in
            let task = URLSession.shared.downloadTask(with: request) { file, response, _ in
                continuation.resume(returning: file.flatMap { kept($0, response) })
            }
            task.resume()
        }
    }

    private static func kept(_ file: URL, _ response: URLResponse?) -> URL? {
        guard let response = response as? HTTPURLResponse, response.statusCode == 200,
            let ending = types[response.mimeType ?? ""],
            let size = try? FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int,
            (1...most).contains(size)
        else { return nil }
        let target = FileManager.default.temporaryDirectory
            .appendingPathComponent("\(UUID().uuidString).\(ending)")
        do { try FileManager.default.moveItem(at: file, to: target) } catch { return nil }
        return target
    }
}
