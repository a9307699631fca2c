#pragma once

#include <array>
#include <string>

namespace lockkeeper::postgres {

/// The statements on the tables of locks, of shares and of waiters. In all of them $1 is the key and $2 the
/// token, unless they say otherwise. Whether a lease has ended is asked on the server's clock when the row is
/// locked.
///
/// One statement is a transaction of its own. Those on shares begin with `lockRow`, in one transaction with
/// it: each statement of a transaction at READ COMMITTED sees what others have committed before it began.
struct LockTexts {
  LockTexts(const std::string& schema, const std::string& table);

  std::string locks;  ///< The tables, with their schema, quoted.
  std::string shares;
  std::string waiters;
  std::string places;       ///< The sequence of the places.
  std::string channel;      ///< On which those who wait are told that it is their turn.
  std::string lostChannel;  ///< On which holders are told the tokens of claims that were broken.

  /// Sends what the statements on several keys read: $1 keys, $2 tokens, $3 owners, $4 ttls in ms, $5 whether
  /// leases that run for longer stay as they are, 0 or 1. All are arrays. It locks nothing, and however long
  /// it is, those behind it are short.
  std::string stage;

  /// $3 owner, $4 ttl in ms, $5 fences, $6 when it was asked for, $7 the place of one that waits, NULL for a
  /// newcomer, $8 the server's time in us from which on it does nothing, or NULL. Returns fence and fences of
  /// a grant, or NULLs and how many ms the key stays taken.
  std::string claim;
  /// After `stage`, of claims in the order of their keys: $1 when it was asked for, $2 as $8 above. Returns
  /// the key besides.
  std::string claimAll;
  std::string undoRest;  ///< After `stage`: frees those behind the first that was not granted.
  /// After `stage`: $1 when it was asked for. Returns the tokens of those that are held, and whether this one
  /// has renewed them.
  std::string renew;
  /// Returns a row if the claim held the key.
  std::string release;
  std::string releaseAll;  ///< After `stage`. Returns the tokens of those released.

  /// Makes the row of a key, if it is missing, and locks it.
  std::string makeRow;
  std::string lockRow;
  std::string lockRows;  ///< After `stage`.
  /// $3 owner, $4 ttl, $5 weight, $6 limit, $7 when it was asked for, $8 place, $9 as $8 of a claim. Returns:
  /// whether it is granted; the fence; the limit of others; how many ms the key stays taken.
  std::string claimShare;
  /// As renew, and what extends the leases of the keys' rows.
  std::string renewShares;
  std::string extendRows;
  /// Returns a row if the claim had a share. Then `shrinkRow`, by $1 alone, tells who waits.
  std::string releaseShare;
  std::string shrinkRow;

  /// Takes a place in the queue, or keeps it: $3 owner, $4 weight, $5 limit, $6 what is added to the place,
  /// $7 for how many ms, $8 as $8 of a claim. Returns the place.
  std::string enterQueue;
  std::string markRow;  ///< $2 for how many ms, $3 whether also if others have just done so.
  std::string leaveQueue;
  std::string clearMark;    ///< Tells the next one that waits, if the key is free.
  std::string listWaiters;  ///< $1 is an array.

  /// Who holds the key. Returns key, owner, remaining ms, fence, id of the grant, weight, limit.
  std::string holders;
  /// Of some keys behind $1, from $2 to $3.
  std::string page;
  /// $2 the fence of the grant that is meant, or NULL. Returns a row if the key was held as a whole.
  std::string breakWhole;
  /// $2 the id of the grant, or NULL for all. Returns a row for each.
  std::string breakShares;
  std::string resize;  ///< $2 permits.

  /// Deletes rows that nobody has used for a day, among some that are chosen by lot. One text for each table.
  std::array<std::string, 3> clearUnused;
};

}  // namespace lockkeeper::postgres
