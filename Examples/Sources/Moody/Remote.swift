import Foundation
import Synchronization

/// An object on its way between a device and the remote. References are the codes of regions.
enum Record: Sendable, Equatable {
  case continent(code: Int, name: String)
  case country(code: Int, name: String, continent: Int?)
  case mood(id: String, date: Date, colors: String, country: Int?)

  /// The remote identifier: the same on every device.
  var id: String {
    switch self {
    case .continent(let code, _), .country(let code, _, _): GeographicRegion.remoteIdentifier(code)
    case .mood(let id, _, _, _): id
    }
  }
}

/// The changes of a device.
struct Upload: Sendable {
  /// The identifier of the device.
  var device: String
  /// Greater than that of all earlier uploads of the device.
  var number: Int
  var saved: [Record]
  /// The identifiers of deleted objects.
  var deleted: [String]
}

/// A part of the remote's log.
struct Batch: Sendable {
  /// The identifier of the remote.
  var remote: UUID
  /// The positions in the log before and after the changes.
  var start, end: Int
  var changes: [Remote.Change]
}

/// A small server in this process. It keeps the last record of each object, and a log of changes.
final class Remote: Sendable {
  /// What happened to a record.
  enum Change: Sendable, Equatable {
    case saved(Record)
    case deleted(String)

    var id: String {
      switch self {
      case .saved(let record): record.id
      case .deleted(let id): id
      }
    }
  }

  private struct Contents {
    var records: [String: Record] = [:]
    var log: [Change] = []
    /// The number of the last upload of each device.
    var uploads: [String: Int] = [:]
  }

  /// Another remote has another log.
  let id = UUID()
  private let contents = Mutex(Contents())

  var records: [String: Record] { contents.withLock { $0.records } }

  /// Applies an upload. One that it knows, or that a later one of the device has overtaken, is ignored: the later one contains its changes.
  func receive(_ upload: Upload) {
    contents.withLock { contents in
      guard upload.number > contents.uploads[upload.device, default: 0] else { return }
      contents.uploads[upload.device] = upload.number
      for id in upload.deleted where contents.records.removeValue(forKey: id) != nil { contents.log.append(.deleted(id)) }
      for record in upload.saved where contents.records[record.id] != record {
        contents.records[record.id] = record
        contents.log.append(.saved(record))
      }
    }
  }

  /// The changes after a position in the log.
  func changes(after position: Int, limit: Int) -> Batch {
    contents.withLock { contents in
      let start = min(position, contents.log.count), end = min(contents.log.count, start + limit)
      return Batch(remote: id, start: start, end: end, changes: Array(contents.log[start..<end]))
    }
  }
}
