import HoldfastFiles
import HoldfastStore

/// Reads the lines of a recording one after the other.
final class RecordingReader {
  private let path: String
  private let fileSystem = POSIXFileSystem()
  private let file: StoreFileHandle
  private var offset: Int64 = 0
  private var buffer: [UInt8] = []
  /// The index in the buffer of the next line.
  private var start = 0
  /// The number of the last line that was read.
  private(set) var number = 0

  init(path: String) throws {
    self.path = path
    do {
      let files = fileSystem, place = try files.resolve(path), folder = try files.openDirectory(place.folder)
      defer { try? files.close(folder) }
      file = try files.openForReading(place.name, in: folder)
    } catch {
      throw StoreError(error, operation: "open the recording", path: path)
    }
  }

  deinit { try? fileSystem.close(file) }

  /// Returns the next line, or nil at the end.
  ///
  /// - Throws: ``StoreError`` with code `damaged` for a line that isn't complete or can't be decoded.
  func next() throws -> RecordingLine? {
    guard let bytes = try nextBytes() else { return nil }
    do { return try RecordingLine.decoded(bytes) } catch {
      throw damaged("The line isn't a request or an answer.", cause: error.withoutCodedValues)
    }
  }

  private func nextBytes() throws -> [UInt8]? {
    var searched = start
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        number += 1
        return Array(buffer[start..<end])
      }
      buffer.removeFirst(start)
      (start, searched) = (0, buffer.count)
      let more: [UInt8]
      do { more = try fileSystem.bytes(of: file, at: offset, count: 1 << 16) } catch {
        throw StoreError(error, operation: "read the recording", path: path)
      }
      if more.isEmpty { break }
      offset += Int64(more.count)
      buffer += more
    }
    if buffer.isEmpty { return nil }
    number += 1
    throw damaged("The file ends within the line, for example because the recording process was killed.")
  }

  /// An error about the last line.
  func damaged(_ reason: String, cause: (any Error)? = nil) -> StoreError {
    StoreError(
      .damaged, operation: "replay line \(number) of the recording", path: path,
      reason: "\(reason) The lines before it were replayed.", cause: cause)
  }
}
