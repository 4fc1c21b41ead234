import Foundation
import Holdfast

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A process that is killed while it saves, and the check of its store.
struct Victim: Codable {
  let path: String
  let acks: String
  let store: FileStore
  /// The delay before the process is killed, counted from the end of ``saves`` saves.
  ///
  /// So the process gets to save even on a busy machine.
  let microseconds: UInt32
  var saves = 0
  /// Whether the delay is counted from the beginning of opening the store instead.
  let countsOpening: Bool

  /// Saves until it is killed, and appends a byte to a file after each save.
  func run() throws {
    let file = try openAcks()
    if countsOpening { startKiller() }
    let context = try Harbour.context(store.description(at: path))
    for save in 0... {
      if save == saves && !countsOpening { startKiller() }
      try Voyage.saveNext(context)
      acknowledge(file)
    }
  }

  /// Empties the file of acknowledgements.
  func openAcks() throws -> Int32 {
    let file = open(acks, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
    precondition(file >= 0)
    return file
  }

  func acknowledge(_ file: Int32) {
    var byte: UInt8 = 1
    precondition(write(file, &byte, 1) == 1)
  }

  private func startKiller() {
    Thread.detachNewThread {
      usleep(microseconds)
      kill(getpid(), SIGKILL)
    }
  }

  /// Opens the store, checks its contents, and saves once.
  func survey() throws -> (saves: Int, fault: String?) {
    let context = try Harbour.context(store.description(at: path))
    var found = try Voyage.check(context)
    if found.fault == nil, try Voyage.saveNext(context) != found.saves + 1 { found.fault = "The store couldn't be saved." }
    try context.persistentStoreCoordinator.close()
    if let fault = try store.fault(at: path) { found.fault = "\(found.fault ?? "") \(fault)" }
    return found
  }
}
