import Foundation
import Holdfast

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file to which a process appends a byte after each save.
struct Acknowledgements {
  private let file: Int32

  init(emptying path: String) {
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
    precondition(file >= 0)
  }

  /// Also counts those that other processes add.
  var count: Int { Int(lseek(file, 0, SEEK_END)) }

  func close() { FileHandle(fileDescriptor: file).closeFile() }

  func add() {
    var byte: UInt8 = 1
    precondition(write(file, &byte, 1) == 1)
  }
}

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
    let acknowledgements = Acknowledgements(emptying: acks)
    if countsOpening { startKiller() }
    let context = try Harbour.context(store.description(at: path))
    for save in 0... {
      if save == saves && !countsOpening { startKiller() }
      try Voyage.saveNext(context)
      acknowledgements.add()
    }
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
