import Foundation
import Synchronization

/// A mood on its way between a device and the remote.
struct MoodRecord: Sendable, Equatable {
  var id: String
  var date: Date
  var colors: String
  /// The country, if the mood has one, and its continent.
  var place, continent: Region?

  struct Region: Sendable, Equatable {
    var code: Int
    var name: String
  }
}

/// A small server in this process. It keeps one record for each mood and a log of changes.
///
/// All requests can be repeated: the last record with an identifier counts.
final class Remote: Sendable {
  /// What happened to a record.
  enum Change: Sendable, Equatable {
    case saved(MoodRecord)
    case deleted(String)

    var id: String {
      switch self {
      case .saved(let record): record.id
      case .deleted(let id): id
      }
    }
  }

  private struct Contents {
    var records: [String: MoodRecord] = [:]
    var log: [Change] = []
  }

  private let contents = Mutex(Contents())

  var records: [String: MoodRecord] { contents.withLock { $0.records } }

  func save(_ records: [MoodRecord]) {
    contents.withLock { contents in
      for record in records where contents.records[record.id] != record {
        contents.records[record.id] = record
        contents.log.append(.saved(record))
      }
    }
  }

  func delete(_ ids: [String]) {
    contents.withLock { contents in
      for id in ids where contents.records.removeValue(forKey: id) != nil { contents.log.append(.deleted(id)) }
    }
  }

  /// The changes after a position in the log, and the position after them.
  func changes(after position: Int, limit: Int) -> (changes: [Change], position: Int) {
    contents.withLock { contents in
      let end = min(contents.log.count, position + limit)
      return (Array(contents.log[min(position, end)..<end]), end)
    }
  }
}
